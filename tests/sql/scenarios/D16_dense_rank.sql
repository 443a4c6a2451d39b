-- All rows of the two best values.
-- tags: rank
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, c, n, rn FROM (
  SELECT *, dense_rank() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn <= 2

t +I 1 b 10
-> +I 1 b 10 1
t +I 2 b 20
-> -U 1 b 10 1
-> +I 2 b 20 1
-> +U 1 b 10 2
t +I 3 b 20
-> +I 3 b 20 1
t +I 4 b 30
-> -D 1 b 10 2
-> -U 2 b 20 1
-> -U 3 b 20 1
-> +I 4 b 30 1
-> +U 2 b 20 2
-> +U 3 b 20 2
t -D 4 b 30
-> -D 4 b 30 1
-> -U 2 b 20 2
-> -U 3 b 20 2
-> +I 1 b 10 2
-> +U 2 b 20 1
-> +U 3 b 20 1
t -D 2 b 20
-> -D 2 b 20 1
t -D 3 b 20
-> -D 3 b 20 1
-> -U 1 b 10 2
-> +U 1 b 10 1
