-- The smallest row so far may be replaced by a smaller one.
-- tags: rank, insert-only
feed t(a INT, b INT) INSERT ONLY
query SELECT a, b FROM (
  SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS rn FROM t)
  WHERE rn = 1

t +I 1 10
-> +I 1 10
t +I 1 5
-> -U 1 10
-> +U 1 5
t +I 1 7
