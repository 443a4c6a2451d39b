-- A group that comes and goes within a batch was never there.
-- tags: aggregate
feed t(id INT, g STRING, v INT) KEY (id)
query SELECT g, sum(v) AS s FROM t GROUP BY g

t +I 1 a 10
-> +I a 10
t -U 1 a 10
-> -D a 10
t +U 1 a 12
-> +I a 12
t +I 2 b 1
-> +I b 1
t -D 2 b 1
-> -D b 1
