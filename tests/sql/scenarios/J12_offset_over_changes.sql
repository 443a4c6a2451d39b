-- Second and third of rows that go.
-- tags: rank
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, c, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn BETWEEN 2 AND 3

t +I 1 b 10
t +I 2 b 20
-> +I 1 b 10
t +I 3 b 30
-> +I 2 b 20
t +I 4 b 5
t -D 3 b 30
-> -D 2 b 20
-> +I 4 b 5
t -D 2 b 20
-> -D 1 b 10
