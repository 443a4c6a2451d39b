-- A maximum only grows.
-- tags: aggregate, rank, insert-only, keyed-reader
feed t(c STRING, id INT, v INT) INSERT ONLY
query SELECT c, id, m FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY m DESC) AS rn FROM (
    SELECT c, id, max(v) AS m FROM t GROUP BY c, id))
  WHERE rn = 1
mode upsert KEY (c)

t +I b 1 5
-> +I b 1 5
t +I b 2 9
-> +U b 2 9
t +I b 1 7
t +I b 2 12
-> +U b 2 12
