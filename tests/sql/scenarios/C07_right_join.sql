-- A right row without a match comes with NULLs.
-- tags: outer-join, nulls
feed L(k INT, a STRING)
feed R(k INT, b STRING)
query SELECT R.k, a, b FROM L RIGHT JOIN R ON L.k = R.k

R +I 1 y
-> +I 1 NULL y
L +I 1 x
-> -D 1 NULL y
-> +I 1 x y
L -D 1 x
-> -D 1 x y
-> +I 1 NULL y
R -D 1 y
-> -D 1 NULL y
