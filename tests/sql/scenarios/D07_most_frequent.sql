-- Without ranks, counts are replaced by what is counted.
-- tags: aggregate, rank, insert-only, keyed-reader
feed t(c STRING, id INT) INSERT ONLY
query SELECT c, id, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC, id) AS rn FROM (
    SELECT c, id, count(*) AS n FROM t GROUP BY c, id))
  WHERE rn <= 2
mode upsert KEY (c, id)

t +I b 1
-> +I b 1 1
t +I b 2
-> +I b 2 1
t +I b 2
-> +U b 2 2
t +I b 3
t +I b 3
-> -D b 1 1
-> +I b 3 2
t +I b 3
-> +U b 3 3
