-- Both sides replace rows by the join key, and both get NULLs back (T1).
-- tags: outer-join, nulls, upsert-feed, keyed-reader
feed L(k INT, a STRING) KEY (k) UPSERT
feed R(k INT, b STRING) KEY (k) UPSERT
query SELECT L.k, a, R.k AS k2, b FROM L FULL JOIN R ON L.k = R.k
mode upsert KEY (k, k2)

L +I 1 a
-> +I 1 a NULL NULL
R +I 1 x
-> -D 1 a NULL NULL
-> +I 1 a 1 x
R +U 1 y
-> +U 1 a 1 y
R -D 1 y
-> -D 1 a 1 y
-> +I 1 a NULL NULL
L +U 1 b
-> +U 1 b NULL NULL
R +I 2 z
-> +I NULL NULL 2 z
L -D 1 b
-> -D 1 b NULL NULL
