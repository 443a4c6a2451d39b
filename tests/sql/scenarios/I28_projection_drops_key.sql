-- Without its key a row cannot be replaced, but taken back in full.
-- tags: stateless
feed u(id INT, g INT, v INT) KEY (id)
query SELECT g, v FROM u

u +I 1 1 1
-> +I 1 1
u -U 1 1 1
-> -D 1 1
u +U 1 2 1
-> +I 2 1
