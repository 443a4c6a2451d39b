-- Rows are taken back through two generators, of which the second leaves out what the first has made.
-- tags: lateral, same-batch
feed t(id INT, a INT, b INT) KEY (id)
query SELECT y FROM t LATERAL VIEW explode(array(a, b)) AS x LATERAL VIEW explode(array(x, 10 * x)) AS y

t +I 1 2 3
-> +I 2
-> +I 20
-> +I 3
-> +I 30
t -U 1 2 3
& t +U 1 2 4
-> -D 3
-> -D 30
-> +I 4
-> +I 40
t -D 1 2 4
-> -D 2
-> -D 20
-> -D 4
-> -D 40
