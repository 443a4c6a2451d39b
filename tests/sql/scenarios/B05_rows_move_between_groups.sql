-- Rows move one by one until their old group is empty.
-- tags: aggregate, keyed-reader
feed t(id INT, g STRING, v INT) KEY (id)
query SELECT g, sum(v) AS s FROM t GROUP BY g
mode upsert KEY (g)

t +I 1 a 10
-> +I a 10
t +I 2 a 1
-> +U a 11
t -U 1 a 10
-> +U a 1
t +U 1 b 10
-> +I b 10
t -U 2 a 1
-> -D a 1
t +U 2 b 1
-> +U b 11
