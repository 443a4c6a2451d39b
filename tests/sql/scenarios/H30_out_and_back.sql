-- A count leaves the first rank and comes back.
-- tags: aggregate, rank, insert-only
feed t(c STRING, id INT) INSERT ONLY
query SELECT c, id, n, rn FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC, id DESC) AS rn FROM (
    SELECT c, id, count(*) AS n FROM t GROUP BY c, id))
  WHERE rn <= 1

t +I b 1
-> +I b 1 1 1
t +I b 2
-> -U b 1 1 1
-> +U b 2 1 1
t +I b 2
-> -U b 2 1 1
-> +U b 2 2 1
t +I b 1
t +I b 1
-> -U b 2 2 1
-> +U b 1 3 1
