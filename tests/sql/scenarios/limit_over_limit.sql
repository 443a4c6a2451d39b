-- The best of the best.
-- tags: limit
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, n FROM (SELECT * FROM t ORDER BY n DESC LIMIT 3) ORDER BY n LIMIT 1

t +I 1 b 10
-> +I 1 10
t +I 2 b 20
t +I 3 b 30
t +I 4 b 40
-> -U 1 10
-> +U 2 20
t -D 4 b 40
-> -U 2 20
-> +U 1 10
t -D 2 b 20
