-- An inner join of new rows gives new pairs only; NULL equals nothing.
-- tags: join, nulls, insert-only
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT, b STRING) INSERT ONLY
query SELECT L.k, a, b FROM L JOIN R ON L.k = R.k

L +I 1 x
R +I 1 y
-> +I 1 x y
R +I 1 z
-> +I 1 x z
L +I NULL n
R +I NULL m
