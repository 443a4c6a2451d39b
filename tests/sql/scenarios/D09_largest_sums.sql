-- A sum may get smaller, and a row that was out comes back.
-- tags: aggregate, rank, insert-only
feed t(c STRING, id INT, v INT) INSERT ONLY
query SELECT c, id, n, rn FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM (
    SELECT c, id, sum(v) AS n FROM t GROUP BY c, id))
  WHERE rn <= 2

t +I b 1 10
-> +I b 1 10 1
t +I b 2 20
-> -U b 1 10 1
-> +I b 1 10 2
-> +U b 2 20 1
t +I b 3 5
t +I b 2 -18
-> -U b 1 10 2
-> -U b 2 20 1
-> +U b 1 10 1
-> +U b 3 5 2
