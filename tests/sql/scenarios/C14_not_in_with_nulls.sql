-- NOT IN knows nothing for sure beside a NULL.
-- tags: subquery, nulls, insert-only
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT) INSERT ONLY
query SELECT k, a FROM L WHERE k NOT IN (SELECT k FROM R)

L +I 1 x
-> +I 1 x
L +I NULL n
-> +I NULL n
R +I 1
-> -D 1 x
-> -D NULL n
L +I 3 z
-> +I 3 z
R +I NULL
-> -D 3 z
