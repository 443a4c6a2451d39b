-- A row moves to another partition, and the ranks of both follow.
-- tags: rank, same-batch
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, c, n, rn FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC, id) AS rn FROM t)
  WHERE rn <= 2

t +I 1 a 10
-> +I 1 a 10 1
t +I 2 a 20
-> -U 1 a 10 1
-> +I 1 a 10 2
-> +U 2 a 20 1
t +I 3 a 30
-> -U 1 a 10 2
-> -U 2 a 20 1
-> +U 2 a 20 2
-> +U 3 a 30 1
t +I 4 b 5
-> +I 4 b 5 1
t -U 3 a 30
& t +U 3 b 30
-> -U 2 a 20 2
-> -U 3 a 30 1
-> -U 4 b 5 1
-> +I 4 b 5 2
-> +U 1 a 10 2
-> +U 2 a 20 1
-> +U 3 b 30 1
t -U 2 a 20
& t +U 2 b 40
-> -D 1 a 10 2
-> -U 2 a 20 1
-> -U 3 b 30 1
-> -U 4 b 5 2
-> +U 1 a 10 1
-> +U 2 b 40 1
-> +U 3 b 30 2
