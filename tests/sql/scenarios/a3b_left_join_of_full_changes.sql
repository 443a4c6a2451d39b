-- The same where old rows are sent.
-- tags: outer-join, same-batch, keyed-reader
feed L(k INT, v STRING) KEY (k)
feed R(k INT, w STRING) KEY (k)
query SELECT L.k, L.v, R.w FROM L LEFT JOIN R ON L.k = R.k
mode upsert KEY (k)

L +I 1 l
-> +I 1 l NULL
R +I 1 a
-> +U 1 l a
R -U 1 a
& R +U 1 b
-> +U 1 l b
R -D 1 b
-> +U 1 l NULL
