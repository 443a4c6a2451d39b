-- A row that changes its key, in one batch: the old key must go (T16).
-- tags: same-batch, keyed-reader
feed u(id INT, v STRING) KEY (id)
query SELECT id, v FROM u
mode upsert KEY (id)

u +I 1 a
-> +I 1 a
u -U 1 a
& u +U 2 a
-> -D 1 a
-> +I 2 a
u -U 2 a
& u +U 1 b
-> -D 2 a
-> +I 1 b
