-- A group shrinks, then goes.
-- tags: aggregate, rank
feed t(id INT, g STRING, v INT) KEY (id)
query SELECT g, c, rn FROM (
  SELECT *, row_number() OVER (ORDER BY c DESC, g DESC) AS rn FROM (
    SELECT g, count(*) AS c FROM t GROUP BY g))
  WHERE rn <= 2

t +I 1 a 1
-> +I a 1 1
t +I 2 a 1
-> -U a 1 1
-> +U a 2 1
t +I 3 b 1
-> +I b 1 2
t -D 1 a 1
-> -U a 2 1
-> -U b 1 2
-> +U a 1 2
-> +U b 1 1
t -D 2 a 1
-> -D a 1 2
