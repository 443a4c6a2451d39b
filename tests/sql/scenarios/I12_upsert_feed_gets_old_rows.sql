-- A feed of newest rows becomes a full changelog: old rows are restored, repeated rows and
-- deletes of unknown keys say nothing.
-- tags: nulls, upsert-feed
feed u(id INT, v STRING) KEY (id) UPSERT
query SELECT id, v FROM u

u +U 1 a
-> +I 1 a
u +U 1 b
-> -U 1 a
-> +U 1 b
u +U 1 b
u -D 1 NULL
-> -D 1 b
u -D 1 NULL
u +I 2 x
-> +I 2 x
