-- A row that is not shown goes, then the one that is.
-- tags: rank
feed t(id INT, c STRING, n INT) KEY (id)
query SELECT id, c, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n) AS rn FROM t)
  WHERE rn <= 1

t +I 1 b 10
-> +I 1 b 10
t +I 2 b 20
t +I 3 b 30
t -D 2 b 20
t -D 1 b 10
-> -U 1 b 10
-> +U 3 b 30
