-- A row that goes makes room for another, whichever.
-- tags: aggregate, limit, same-batch
feed t(id INT, v INT) KEY (id)
query SELECT count(*) AS n FROM (SELECT id, v FROM t LIMIT 1)

t +I 1 1
-> +I 1
t +I 2 2
t -D 1 1
t -U 2 2
& t +U 2 3
t -D 2 3
-> -U 1
-> +U 0
