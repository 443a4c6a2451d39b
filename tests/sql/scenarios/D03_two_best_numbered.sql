-- By partition and rank, a better row replaces the rows below it.
-- tags: rank, insert-only, keyed-reader
feed t(c STRING, id INT, n INT) INSERT ONLY
query SELECT c, id, n, rn FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC, id) AS rn FROM t)
  WHERE rn <= 2
mode upsert KEY (c, rn)

t +I b 1 12
-> +I b 1 12 1
t +I b 2 19
-> +I b 1 12 2
-> +U b 2 19 1
t +I b 6 30
-> +U b 2 19 2
-> +U b 6 30 1
