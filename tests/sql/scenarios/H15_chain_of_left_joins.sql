-- NULLs in a chain come and go one by one.
-- tags: outer-join, nulls, same-batch
feed A(a INT) KEY (a)
feed B(a INT, b STRING) KEY (a)
feed C(a INT, c STRING) KEY (a)
query SELECT A.a, B.b, C.c FROM A LEFT JOIN B ON A.a = B.a LEFT JOIN C ON A.a = C.a

A +I 1
-> +I 1 NULL NULL
C +I 1 c
-> -U 1 NULL NULL
-> +U 1 NULL c
B +I 1 b
-> -U 1 NULL c
-> +U 1 b c
B -U 1 b
& B +U 1 b2
-> -U 1 b c
-> +U 1 b2 c
C -D 1 c
-> -U 1 b2 c
-> +U 1 b2 NULL
