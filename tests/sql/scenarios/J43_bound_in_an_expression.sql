-- A bound that is not plain to see is computed over all rows.
-- tags: rank, insert-only
feed t(c STRING, id INT, n INT) INSERT ONLY
query SELECT c, id, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn + 1 <= 3

t +I b 1 5
-> +I b 1 5
t +I b 2 7
-> +I b 2 7
t +I b 3 6
-> -D b 1 5
-> +I b 3 6
