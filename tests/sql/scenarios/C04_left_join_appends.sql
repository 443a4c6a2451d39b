-- A left row comes with NULLs and loses them with the first match.
-- tags: outer-join, nulls, insert-only
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT, b STRING) INSERT ONLY
query SELECT L.k, a, b FROM L LEFT JOIN R ON L.k = R.k

L +I 1 x
-> +I 1 x NULL
R +I 1 y
-> -D 1 x NULL
-> +I 1 x y
R +I 1 z
-> +I 1 x z
L +I 2 w
-> +I 2 w NULL
L +I NULL n
-> +I NULL n NULL
R +I NULL m
