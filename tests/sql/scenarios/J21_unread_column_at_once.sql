-- An update of a column nobody reads says nothing (T11).
-- tags: aggregate, same-batch
feed t(id INT, g STRING, v INT, note STRING) KEY (id)
query SELECT g, sum(v) AS s FROM t GROUP BY g

t +I 1 a 10 p
-> +I a 10
t -U 1 a 10 p
& t +U 1 a 10 q
t -U 1 a 10 q
& t +U 1 a 11 q
-> -U a 10
-> +U a 11
