-- A delete that names only the key takes the whole pair back.
-- tags: join, nulls, upsert-feed, keyed-reader
feed L(id INT, v INT) KEY (id) UPSERT
feed R(id INT, n STRING) KEY (id) UPSERT
query SELECT L.id, R.n, L.v FROM L JOIN R ON L.id = R.id
mode upsert KEY (id)

L +I 1 10
R +I 1 Alice
-> +I 1 Alice 10
L -D 1 NULL
-> -D 1 Alice 10
