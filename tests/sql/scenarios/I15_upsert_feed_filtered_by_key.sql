-- Newest rows, filtered by their key, can be passed on as they are.
-- tags: upsert-feed, keyed-reader
feed u(id INT, v INT) KEY (id) UPSERT
query SELECT id, v FROM u WHERE id > 5
mode upsert KEY (id)

u +I 1 10
u +I 7 1
-> +I 7 1
u +U 7 2
-> +U 7 2
u -D 7 2
-> -D 7 2
