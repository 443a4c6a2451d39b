-- Ranks from an offset, without their number.
-- tags: rank, insert-only
feed t(c STRING, id INT, n INT) INSERT ONLY
query SELECT c, id, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn BETWEEN 2 AND 3

t +I b 1 10
t +I b 2 20
-> +I b 1 10
t +I b 3 30
-> +I b 2 20
t +I b 4 40
-> -D b 1 10
-> +I b 3 30
