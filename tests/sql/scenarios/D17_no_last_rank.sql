-- Ranks without a last one are computed over all rows.
-- tags: rank, insert-only
feed t(c STRING, id INT, n INT) INSERT ONLY
query SELECT c, id, n, rn FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n) AS rn FROM t)
  WHERE rn > 2

t +I b 1 5
t +I b 2 6
t +I b 3 7
-> +I b 3 7 3
t +I b 4 1
-> -D b 3 7 3
-> +I b 2 6 3
-> +I b 3 7 4
