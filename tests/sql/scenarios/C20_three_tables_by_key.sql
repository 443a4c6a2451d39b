-- Three tables with one key are joined by it; the reader replaces rows by that key.
-- tags: join, same-batch, keyed-reader
feed A(a INT, av INT) KEY (a)
feed B(b INT, bv INT) KEY (b)
feed C(c INT, cv INT) KEY (c)
query SELECT a, av, bv, cv FROM A JOIN B ON a = b JOIN C ON a = c
mode upsert KEY (a)

A +I 1 10
B +I 1 20
C +I 1 30
-> +I 1 10 20 30
B -U 1 20
& B +U 1 21
-> +U 1 10 21 30
A -D 1 10
-> -D 1 10 21 30
C -D 1 30
