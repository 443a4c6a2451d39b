-- The reader replaces by more columns than the key: an update of those moves the row.
-- tags: keyed-reader
feed u(id INT, g INT, v INT) KEY (id)
query SELECT id, g, v FROM u
mode upsert KEY (id, g)

u +I 1 1 1
-> +I 1 1 1
u -U 1 1 1
-> -D 1 1 1
u +U 1 2 1
-> +I 1 2 1
