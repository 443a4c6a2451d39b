-- A column that does not decide ranks is kept up to date all the same.
-- tags: aggregate, rank, insert-only, keyed-reader
feed t(c STRING, id INT, v INT) INSERT ONLY
query SELECT c, id, m, cnt FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY m DESC) AS rn FROM (
    SELECT c, id, max(v) AS m, count(*) AS cnt FROM t GROUP BY c, id))
  WHERE rn = 1
mode upsert KEY (c)

t +I b 1 5
-> +I b 1 5 1
t +I b 1 3
-> +U b 1 5 2
t +I b 1 5
-> +U b 1 5 3
