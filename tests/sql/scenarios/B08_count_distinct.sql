-- A value is counted once, until the last row with it goes.
-- tags: aggregate, distinct
feed t(id INT, g STRING, u STRING) KEY (id)
query SELECT g, count(DISTINCT u) AS uv, count(*) AS pv FROM t GROUP BY g

t +I 1 a x
-> +I a 1 1
t +I 2 a x
-> -U a 1 1
-> +U a 1 2
t +I 3 a y
-> -U a 1 2
-> +U a 2 3
t -D 1 a x
-> -U a 2 3
-> +U a 2 2
t -D 2 a x
-> -U a 2 2
-> +U a 1 1
