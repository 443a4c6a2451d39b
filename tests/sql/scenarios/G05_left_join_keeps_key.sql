-- The left key is the key where there is at most one right row.
-- tags: outer-join, same-batch, keyed-reader
feed L(id INT, k INT, a STRING) KEY (id, k)
feed R(k INT, b STRING) KEY (k)
query SELECT L.id, L.k, a, b FROM L LEFT JOIN R ON L.k = R.k
mode upsert KEY (id, k)

L +I 1 5 x
-> +I 1 5 x NULL
R +I 5 y
-> +U 1 5 x y
L -U 1 5 x
& L +U 1 5 z
-> +U 1 5 z y
R -D 5 y
-> +U 1 5 z NULL
