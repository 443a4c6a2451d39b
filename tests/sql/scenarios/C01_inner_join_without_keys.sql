-- Without keys rows are counted; taking back a row that never came takes no pair back (T7).
-- tags: join, same-batch
feed L(k INT, a STRING)
feed R(k INT, b STRING)
query SELECT L.k, a, b FROM L JOIN R ON L.k = R.k

L +I 1 x
L +I 1 x
R +I 1 y
-> +I 1 x y
-> +I 1 x y
L -D 1 x
-> -D 1 x y
R -U 1 y
& R +U 1 z
-> -D 1 x y
-> +I 1 x z
L -D 1 q
