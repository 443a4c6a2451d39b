-- IN gives a left row once, however many right rows there are.
-- tags: subquery, insert-only
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT) INSERT ONLY
query SELECT k, a FROM L WHERE k IN (SELECT k FROM R)

L +I 1 x
R +I 1
-> +I 1 x
R +I 1
L +I 1 y
-> +I 1 y
