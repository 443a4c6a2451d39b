-- Without groups there is one row, over no rows too, as in batch.
-- tags: aggregate
feed t(id INT, v INT) KEY (id)
query SELECT count(*) AS c, sum(v) AS s FROM t

t +I 1 5
-> +I 1 5
t -D 1 5
-> -U 1 5
-> +U 0 NULL
t +I 2 7
-> -U 0 NULL
-> +U 1 7
