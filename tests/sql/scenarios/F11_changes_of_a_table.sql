-- The changes of a table, unchanged.
-- tags: stateless
feed t(id INT, v STRING) KEY (id)
query SELECT id, v FROM t

t +I 1 a
-> +I 1 a
t -U 1 a
-> -D 1 a
t +U 1 b
-> +I 1 b
t -D 1 b
-> -D 1 b
