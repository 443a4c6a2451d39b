-- A table beside itself twice, of which a subquery reads no key column (TPC-H 21).
-- tags: aggregate, subquery, same-batch, self-join
feed l(o INT, n INT, s INT, late BOOLEAN) KEY (o, n)
query SELECT s, count(*) AS waits FROM l l1 WHERE late AND EXISTS (SELECT * FROM l l2 WHERE l2.o = l1.o AND l2.s <> l1.s) AND NOT EXISTS (SELECT * FROM l l3 WHERE l3.o = l1.o AND l3.s <> l1.s AND l3.late) GROUP BY s

l +I 1 1 7 true
l +I 1 2 8 false
-> +I 7 1
l -U 1 2 8 false
& l +U 1 2 8 true
-> -D 7 1
l -D 1 1 7 true
& l +I 1 3 9 false
-> +I 8 1
