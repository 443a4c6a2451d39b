-- The same sums, unfiltered, for a reader that replaces by key.
-- tags: aggregate, insert-only, keyed-reader
feed m(n INT, w STRING) INSERT ONLY
query WITH totals AS (SELECT sum(n) AS n, w FROM m GROUP BY w)
  SELECT w, n FROM totals
mode upsert KEY (w)

m +I 3 a
-> +I a 3
m +I 4 a
-> +U a 7
