-- A left row goes with the last right row it needs.
-- tags: subquery, insert-only, same-batch
feed L(k INT, a STRING) INSERT ONLY
feed R(id INT, k INT) KEY (id)
query SELECT k, a FROM L WHERE k IN (SELECT k FROM R)

L +I 1 x
R +I 7 1
-> +I 1 x
R +I 8 1
R -D 7 1
R -U 8 1
& R +U 8 2
-> -D 1 x
