-- Rows that enter and leave the best move their total.
-- tags: aggregate, rank, insert-only
feed t(c STRING, id INT, v INT) INSERT ONLY
query SELECT c, sum(v) AS s FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY v DESC) AS rn FROM t)
  WHERE rn <= 2 GROUP BY c

t +I b 1 10
-> +I b 10
t +I b 2 20
-> -U b 10
-> +U b 30
t +I b 3 15
-> -U b 30
-> +U b 35
