-- The same sums in full, for a reader that wants old rows.
-- tags: aggregate, insert-only
feed m(n INT, w STRING) INSERT ONLY
query WITH totals AS (SELECT sum(n) AS n, w FROM m GROUP BY w)
  SELECT n, w FROM totals

m +I 3 a
-> +I 3 a
m +I 4 a
-> -U 3 a
-> +U 7 a
