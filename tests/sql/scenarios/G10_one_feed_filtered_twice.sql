-- Two filters over one feed of newest rows, both past the same old rows.
-- tags: set-operation, nulls, upsert-feed, self-join
feed u(id INT, v INT) KEY (id) UPSERT
query SELECT id, v FROM u WHERE v < 10 UNION ALL SELECT id, v FROM u WHERE v > 0

u +I 1 5
-> +I 1 5
-> +I 1 5
u +I 2 -1
-> +I 2 -1
u +U 1 20
-> -D 1 5
-> -D 1 5
-> +I 1 20
u +U 2 10
-> -D 2 -1
-> +I 2 10
u -D 1 NULL
-> -D 1 20
u +U 2 9
-> -D 2 10
-> +I 2 9
-> +I 2 9
