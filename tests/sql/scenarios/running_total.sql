-- A row in the middle moves the totals of all rows after it, and of no others.
-- tags: window-function, same-batch, keyed-reader
feed t(id INT, g STRING, v INT) KEY (id)
query SELECT id, g, v, sum(v) OVER (PARTITION BY g ORDER BY id) AS total FROM t
mode upsert KEY (id)

t +I 1 a 1
& t +I 3 a 3
& t +I 4 a 4
& t +I 5 b 5
-> +I 1 a 1 1
-> +I 3 a 3 4
-> +I 4 a 4 8
-> +I 5 b 5 5
t +I 2 a 2
-> +I 2 a 2 3
-> +U 3 a 3 6
-> +U 4 a 4 10
t -U 4 a 4
& t +U 4 b 4
-> +U 4 b 4 4
-> +U 5 b 5 9
t -D 3 a 3
-> -D 3 a 3 6
