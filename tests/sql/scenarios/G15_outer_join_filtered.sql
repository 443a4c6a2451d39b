-- A filter on the right side makes a left join an inner one.
-- tags: outer-join, insert-only
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT, b STRING) INSERT ONLY
query SELECT L.k, a, b FROM L LEFT JOIN R ON L.k = R.k WHERE R.b = 'x'

L +I 1 a
R +I 1 x
-> +I 1 a x
R +I 1 y
L +I 2 b
R +I 2 y
