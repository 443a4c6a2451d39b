-- An update of a column nobody reads: both halves together say nothing (T11).
-- tags: aggregate
feed t(id INT, g STRING, v INT, note STRING) KEY (id)
query SELECT g, sum(v) AS s FROM t GROUP BY g

t +I 1 a 10 p
-> +I a 10
t -U 1 a 10 p
-> -D a 10
t +U 1 a 10 q
-> +I a 10
