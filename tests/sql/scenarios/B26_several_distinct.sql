-- Distinct values of two columns beside plain functions.
-- tags: aggregate, distinct, same-batch
feed t(g STRING, b INT, c STRING)
query SELECT g, sum(DISTINCT b) AS sb, count(DISTINCT c) AS cd, avg(b) AS av, max(b) AS mx FROM t GROUP BY g

t +I k 1 c1
-> +I k 1 1 1.0 1
t +I k 2 c1
-> -U k 1 1 1.0 1
-> +U k 3 1 1.5 2
t +I k 2 c2
-> -U k 3 1 1.5 2
-> +U k 3 2 1.6666666666666667 2
t -D k 2 c1
-> -U k 3 2 1.6666666666666667 2
-> +U k 3 2 1.5 2
t -U k 2 c2
& t +U k 1 c2
-> -U k 3 2 1.5 2
-> +U k 1 2 1.0 1
