-- An update of the right row is one update of the pair; no NULLs show in between (T10).
-- tags: outer-join, nulls, insert-only, same-batch
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT, b STRING) KEY (k)
query SELECT L.k, a, b FROM L LEFT JOIN R ON L.k = R.k

L +I 1 x
-> +I 1 x NULL
R +I 1 y
-> -D 1 x NULL
-> +I 1 x y
R -U 1 y
& R +U 1 z
-> -D 1 x y
-> +I 1 x z
