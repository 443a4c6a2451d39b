-- The best row of each partition.
-- tags: rank, same-batch
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, c, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn = 1

t +I 1 b 10
-> +I 1 b 10
t +I 2 b 20
-> -U 1 b 10
-> +U 2 b 20
t -U 2 b 20
& t +U 2 b 5
-> -U 2 b 20
-> +U 1 b 10
t -D 1 b 10
-> -U 1 b 10
-> +U 2 b 5
t -D 2 b 5
-> -D 2 b 5
