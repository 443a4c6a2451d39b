-- New rows alone are enough where the join key is the key.
-- tags: outer-join, upsert-feed, insert-only
feed L(k INT, a STRING) KEY (k) UPSERT
feed R(k INT, b STRING) INSERT ONLY
query SELECT L.k, a, b FROM L LEFT JOIN R ON L.k = R.k

L +I 1 x
-> +I 1 x NULL
R +I 1 y
-> -D 1 x NULL
-> +I 1 x y
L +U 1 x2
-> -D 1 x y
-> +I 1 x2 y
L -D 1 x2
-> -D 1 x2 y
