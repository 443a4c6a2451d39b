-- What comes with its match never shows NULLs.
-- tags: outer-join, nulls, insert-only, same-batch
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT, b STRING) INSERT ONLY
query SELECT L.k, a, b FROM L LEFT JOIN R ON L.k = R.k

L +I 98 w
& R +I 99 w
-> +I 98 w NULL
L +I 1 x
& R +I 1 y
-> +I 1 x y
