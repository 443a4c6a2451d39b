-- A row that is replaced is not counted twice: NULLs come back with the delete (T1).
-- tags: outer-join, nulls, upsert-feed, keyed-reader
feed L(k INT, v STRING) KEY (k) UPSERT
feed R(k INT, w STRING) KEY (k) UPSERT
query SELECT R.k, R.w, L.v FROM L RIGHT JOIN R ON L.k = R.k
mode upsert KEY (k)

R +I 1 r
-> +I 1 r NULL
L +I 1 a
-> +U 1 r a
L +U 1 b
-> +U 1 r b
L -D 1 b
-> +U 1 r NULL
