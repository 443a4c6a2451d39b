-- Four tables on one key are joined at once; what changes in several of them in one batch is one change.
-- tags: join, upsert-feed, insert-only, same-batch
feed A(k INT, a INT) KEY (k)
feed B(k INT, b INT) KEY (k) UPSERT
feed C(k INT, n INT, c INT) KEY (k, n)
feed D(k INT, d INT) INSERT ONLY
query SELECT k, a, b, n, c, d FROM A JOIN B USING (k) JOIN C USING (k) JOIN D USING (k)

A +I 1 10
& B +I 1 20
& C +I 1 1 30
& C +I 1 2 31
D +I 1 40
-> +I 1 10 20 1 30 40
-> +I 1 10 20 2 31 40
A -U 1 10
& A +U 1 11
& B +U 1 21
& C -D 1 2 31
-> -D 1 10 20 1 30 40
-> -D 1 10 20 2 31 40
-> +I 1 11 21 1 30 40
D +I 1 40
-> +I 1 11 21 1 30 40
C -U 1 1 30
& C +U 2 1 30
-> -D 1 11 21 1 30 40
-> -D 1 11 21 1 30 40
C -U 2 1 30
& C +U 1 1 32
-> +I 1 11 21 1 32 40
-> +I 1 11 21 1 32 40
B -D 1 21
& B +I 1 21
B -D 1 21
-> -D 1 11 21 1 32 40
-> -D 1 11 21 1 32 40
