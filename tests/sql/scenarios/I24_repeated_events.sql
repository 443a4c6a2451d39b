-- A feed that says everything twice is read as one of newest rows. Between batches a lone
-- old row is a delete; within one, its new row follows.
-- tags: upsert-feed
feed u(id INT, v STRING) KEY (id) UPSERT
query SELECT id, v FROM u

u +I 1 a
-> +I 1 a
u +I 1 a
u -U 1 a
-> -D 1 a
u +U 1 b
-> +I 1 b
u -U 1 a
-> -D 1 b
u +U 1 b
-> +I 1 b
u -D 1 b
-> -D 1 b
u -D 1 b
