-- A delete that knows its key only is enough for a reader that replaces by key.
-- tags: nulls, upsert-feed, keyed-reader
feed u(id INT, v STRING) KEY (id) UPSERT
query SELECT id, v FROM u
mode upsert KEY (id)

u +I 1 a
-> +I 1 a
u +U 1 b
-> +U 1 b
u -D 1 NULL
-> -D 1 b
