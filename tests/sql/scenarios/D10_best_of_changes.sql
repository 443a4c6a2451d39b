-- Rows that go make room for the next ones; a row never given changes nothing.
-- tags: rank, same-batch
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, c, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn <= 2

t +I 1 b 10
-> +I 1 b 10
t +I 2 b 20
-> +I 2 b 20
t +I 3 b 5
t -D 2 b 20
-> -D 2 b 20
-> +I 3 b 5
t -U 1 b 10
& t +U 1 b 1
-> -U 1 b 10
-> +U 1 b 1
t -D 3 b 5
-> -D 3 b 5
t -D 1 b 1
-> -D 1 b 1
