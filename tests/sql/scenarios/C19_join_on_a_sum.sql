-- A join key that is a sum moves its row from one match to another.
-- tags: aggregate, join, insert-only
feed L(k INT, v INT) INSERT ONLY
feed R(w INT, n STRING) INSERT ONLY
query SELECT L.k, L.v, R.n FROM (SELECT k, SUM(v) v FROM L GROUP BY k) L JOIN R ON L.v = R.w

R +I 10 ten
R +I 15 fifteen
L +I 1 10
-> +I 1 10 ten
L +I 1 5
-> -D 1 10 ten
-> +I 1 15 fifteen
