-- A group that grows into a filter is new to the reader.
-- tags: aggregate, insert-only
feed m(n INT, w STRING) INSERT ONLY
query WITH totals AS (SELECT sum(n) AS n, w FROM m GROUP BY w)
  SELECT n, w FROM totals WHERE n > 5

m +I 3 a
m +I 4 a
-> +I 7 a
