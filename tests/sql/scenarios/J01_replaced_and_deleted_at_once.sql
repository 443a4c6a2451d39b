-- A row replaced and deleted in one batch is gone, for it was there before (T12).
-- tags: join, upsert-feed, same-batch, keyed-reader
feed L(k INT, a STRING) KEY (k) UPSERT
feed R(k INT, b STRING) KEY (k) UPSERT
query SELECT L.k, a, b FROM L JOIN R ON L.k = R.k
mode upsert KEY (k)

L +I 98 w
& R +I 99 w
L +I 1 x
& R +I 1 y
-> +I 1 x y
L +I 97 w
& R +U 1 z
& R -D 1 z
-> -D 1 x y
L +I 96 w
