-- A correlated count_if over no rows is zero, not NULL.
-- tags: aggregate, subquery, nulls, self-join
feed t(id INT, g STRING) KEY (id)
feed u(g STRING, v INT)
query SELECT id, (SELECT count_if(v > 1) FROM u WHERE u.g = t.g) AS c, (SELECT count(v) FROM u WHERE u.g = t.g) AS n FROM t

t +I 1 a
-> +I 1 0 0
u +I a 2
-> -U 1 0 0
-> +U 1 1 1
u +I a 1
-> -U 1 1 1
-> +U 1 1 2
u -D a 2
-> -U 1 1 2
-> +U 1 0 1
u -D a 1
-> -U 1 0 1
-> +U 1 0 0
