-- A left row goes when its first match comes.
-- tags: subquery, insert-only
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT) INSERT ONLY
query SELECT k, a FROM L WHERE NOT EXISTS (SELECT 1 FROM R WHERE R.k = L.k)

L +I 1 x
-> +I 1 x
L +I 2 y
-> +I 2 y
R +I 1
-> -D 1 x
