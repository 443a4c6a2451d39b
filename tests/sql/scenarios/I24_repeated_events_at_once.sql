-- A feed that says everything twice, each update in one piece.
-- tags: upsert-feed, same-batch
feed u(id INT, v STRING) KEY (id) UPSERT
query SELECT id, v FROM u

u +I 1 a
& u +I 1 a
-> +I 1 a
u -U 1 a
& u +U 1 b
-> -U 1 a
-> +U 1 b
u -U 1 a
& u +U 1 b
u -D 1 b
-> -D 1 b
u -D 1 b
