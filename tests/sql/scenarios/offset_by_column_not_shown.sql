-- All but the best row, of which what decides is not shown.
-- tags: limit, same-batch
feed t(id INT, g STRING, v INT) KEY (id)
query SELECT g FROM t ORDER BY v DESC, id OFFSET 1

t +I 1 a 5
& t +I 2 b 3
-> +I b
t -U 2 b 3
& t +U 2 b 9
-> -D b
-> +I a
