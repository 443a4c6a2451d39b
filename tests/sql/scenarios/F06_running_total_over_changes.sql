-- A window over changing rows takes its totals back and gives them anew.
-- tags: window-function, same-batch
feed t(id INT, g STRING, v INT) KEY (id)
query SELECT id, v, sum(v) OVER (PARTITION BY g ORDER BY v) AS s FROM t

t +I 1 a 10
-> +I 1 10 10
t +I 2 a 5
-> -U 1 10 10
-> +I 2 5 5
-> +U 1 10 15
t -U 2 a 5
& t +U 2 a 7
-> -U 1 10 15
-> -U 2 5 5
-> +U 1 10 17
-> +U 2 7 7
t -D 2 a 7
-> -D 2 7 7
-> -U 1 10 17
-> +U 1 10 10
