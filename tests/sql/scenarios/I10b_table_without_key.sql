-- A table without a key is read as a bag of rows.
-- tags: stateless
feed u(id INT, v STRING)
query SELECT id, v FROM u

u +I 1 a
-> +I 1 a
u -U 1 a
-> -D 1 a
u +U 1 b
-> +I 1 b
u -D 1 b
-> -D 1 b
