-- A subquery of IN holds a correlated scalar one, with a count that is never NULL (TPC-H 20).
-- tags: aggregate, subquery, nulls, same-batch
feed s(id INT) KEY (id)
feed p(id INT, sup INT, n INT) KEY (id)
feed l(pid INT, q INT)
query SELECT id FROM s WHERE id IN (SELECT sup FROM p WHERE n > (SELECT count(*) FROM l WHERE l.pid = p.id))

s +I 1
s +I 2
p +I 10 1 1
-> +I 1
p +I 20 2 2
-> +I 2
l +I 10 5
-> -D 1
l -D 10 5
& l +I 20 1
-> +I 1
l +I 20 1
-> -D 2
