-- A feed of newest rows beside one with old rows.
-- tags: set-operation, upsert-feed
feed a(id INT, v INT) KEY (id) UPSERT
feed b(id INT, v INT) KEY (id)
query SELECT id, v FROM a UNION ALL SELECT id, v FROM b

a +I 1 1
-> +I 1 1
b +I 2 1
-> +I 2 1
a +U 1 2
-> -D 1 1
-> +I 1 2
b -U 2 1
-> -D 2 1
b +U 2 3
-> +I 2 3
