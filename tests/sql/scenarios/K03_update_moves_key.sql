-- An update of the key is the end of the old row and a new one (T16).
-- tags: keyed-reader
feed u(id INT, v STRING) KEY (id)
query SELECT id, v FROM u
mode upsert KEY (id)

u +I 1 a
-> +I 1 a
u -U 1 a
-> -D 1 a
u +U 2 a
-> +I 2 a
