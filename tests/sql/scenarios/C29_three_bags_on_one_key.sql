-- Three tables without keys: copies multiply, a condition is on two of them, and NULL matches nothing.
-- tags: join, nulls, same-batch
feed A(k INT, a INT)
feed B(k INT, b INT)
feed C(k INT, c INT)
query SELECT a, b, c FROM A JOIN B ON A.k = B.k JOIN C ON C.k = B.k AND c > a

A +I 1 10
& A +I 1 10
& A +I NULL 1
B +I 1 20
& B +I NULL 2
& B +I 1 21
C +I 1 30
& C +I 1 5
& C +I NULL 3
-> +I 10 20 30
-> +I 10 20 30
-> +I 10 21 30
-> +I 10 21 30
B -D 1 21
& B +I 1 20
-> -D 10 21 30
-> -D 10 21 30
-> +I 10 20 30
-> +I 10 20 30
A -D 1 10
& C -U 1 5
& C +U 1 11
& A +I 1 29
-> -D 10 20 30
-> -D 10 20 30
-> +I 10 20 11
-> +I 10 20 11
-> +I 29 20 30
-> +I 29 20 30
A -D 1 29
& A +I 1 29
A -D 1 10
& A -D 1 29
-> -D 10 20 11
-> -D 10 20 11
-> -D 10 20 30
-> -D 10 20 30
-> -D 29 20 30
-> -D 29 20 30
