-- Old rows may come after the rows that replace them; what counts is the bag of rows.
-- tags: stateless
feed u(id INT, v STRING)
query SELECT id, v FROM u

u +I 1 a
-> +I 1 a
u +U 1 b
-> +I 1 b
u -U 1 a
-> -D 1 a
u +U 1 c
-> +I 1 c
u -D 1 c
-> -D 1 c
u -D 1 b
-> -D 1 b
