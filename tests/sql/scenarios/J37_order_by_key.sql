-- The row that stays first is kept up to date.
-- tags: aggregate, rank, insert-only
feed t(c STRING, id INT, v INT) INSERT ONLY
query SELECT c, id, s FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY id) AS rn FROM (
    SELECT c, id, sum(v) AS s FROM t GROUP BY c, id))
  WHERE rn = 1

t +I b 2 5
-> +I b 2 5
t +I b 1 7
-> -U b 2 5
-> +U b 1 7
t +I b 1 1
-> -U b 1 7
-> +U b 1 8
