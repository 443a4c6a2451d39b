-- The best rows, of which what decides is not shown.
-- tags: aggregate, limit, same-batch
feed t(id INT, g STRING, v INT) KEY (id)
query SELECT g, count(*) AS c FROM (SELECT g FROM t ORDER BY v DESC, id LIMIT 2) GROUP BY g

t +I 1 a 5
& t +I 2 b 3
& t +I 3 c 7
-> +I a 1
-> +I c 1
t -U 2 b 3
& t +U 2 b 9
-> -D a 1
-> +I b 1
t -D 3 c 7
-> -D c 1
-> +I a 1
