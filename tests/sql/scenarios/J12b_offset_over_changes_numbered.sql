-- Second and third of rows that go, with their ranks.
-- tags: rank
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, c, n, rn FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn BETWEEN 2 AND 3

t +I 1 b 10
t +I 2 b 20
-> +I 1 b 10 2
t +I 3 b 30
-> -U 1 b 10 2
-> +I 1 b 10 3
-> +U 2 b 20 2
t +I 4 b 5
t -D 3 b 30
-> -U 1 b 10 3
-> -U 2 b 20 2
-> +U 1 b 10 2
-> +U 4 b 5 3
t -D 2 b 20
-> -D 4 b 5 3
-> -U 1 b 10 2
-> +U 4 b 5 2
