-- A right row that was never given is not missed (T7).
-- tags: outer-join, same-batch
feed L(k INT, a STRING) KEY (k)
feed R(rid INT, k INT, b STRING) KEY (rid)
query SELECT L.k, a, rid, b FROM L LEFT JOIN R ON L.k = R.k

L +I 1 x
-> +I 1 x NULL NULL
R +I 10 1 p
-> -D 1 x NULL NULL
-> +I 1 x 10 p
R +I 11 1 q
-> +I 1 x 11 q
L -U 1 x
& L +U 1 y
-> -U 1 x 10 p
-> -U 1 x 11 q
-> +U 1 y 10 p
-> +U 1 y 11 q
R -D 10 1 p
-> -D 1 y 10 p
R -D 11 1 q
-> -D 1 y 11 q
-> +I 1 y NULL NULL
R -D 12 1 zz
