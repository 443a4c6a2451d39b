-- The best row of each partition replaces the one before.
-- tags: rank, same-batch, keyed-reader
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, c, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn = 1
mode upsert KEY (c)

t +I 1 b 10
-> +I 1 b 10
t +I 2 b 20
-> +U 2 b 20
t -U 2 b 20
& t +U 2 b 5
-> +U 1 b 10
t -D 1 b 10
-> +U 2 b 5
