-- A key that holds the join key and more finds the row an update replaces.
-- tags: join, same-batch, keyed-reader
feed L(k INT, a STRING) KEY (k)
feed R(k INT, b STRING) KEY (k)
query SELECT L.k, a, b FROM L JOIN R ON L.k = R.k
mode upsert KEY (k)

L +I 1 x
R +I 1 y
-> +I 1 x y
R -U 1 y
& R +U 1 z
-> +U 1 x z
L -D 1 x
-> -D 1 x z
