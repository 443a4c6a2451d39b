-- One right row decides over many left rows.
-- tags: subquery
feed L(id INT, k INT) KEY (id)
feed R(k INT) KEY (k)
query SELECT id, k FROM L WHERE k IN (SELECT k FROM R)

L +I 1 7
L +I 2 7
R +I 7
-> +I 1 7
-> +I 2 7
R -D 7
-> -D 1 7
-> -D 2 7
