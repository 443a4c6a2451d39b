-- Both sides come out without a match, and with NULL keys.
-- tags: outer-join, nulls
feed L(k INT, a STRING)
feed R(k INT, b STRING)
query SELECT L.k, a, R.k AS k2, b FROM L FULL JOIN R ON L.k = R.k

L +I 1 x
-> +I 1 x NULL NULL
R +I 2 y
-> +I NULL NULL 2 y
R +I 1 z
-> -D 1 x NULL NULL
-> +I 1 x 1 z
L +I 2 w
-> -D NULL NULL 2 y
-> +I 2 w 2 y
R -D 2 y
-> -D 2 w 2 y
-> +I 2 w NULL NULL
L -D 1 x
-> -D 1 x 1 z
-> +I NULL NULL 1 z
