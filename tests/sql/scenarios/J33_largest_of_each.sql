-- A correlated scalar subquery is a left join; its update is one update (T10).
-- tags: aggregate, subquery, insert-only
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT, v INT) INSERT ONLY
query SELECT k, a, (SELECT MAX(v) FROM R WHERE R.k = L.k) AS m FROM L

L +I 1 x
-> +I 1 x NULL
R +I 1 3
-> -D 1 x NULL
-> +I 1 x 3
R +I 1 4
-> -D 1 x 3
-> +I 1 x 4
