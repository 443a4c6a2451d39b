-- A window in the order of event time takes changing rows like any other.
-- tags: window-function, time, same-batch
feed t(id INT, v INT, ts TIMESTAMP) KEY (id)
query SELECT id, sum(v) OVER (PARTITION BY id % 2 ORDER BY ts) AS s FROM t

t +I 1 1 2024-01-01T00:00:10
-> +I 1 1
t +I 3 3 2024-01-01T00:00:05
-> -U 1 1
-> +I 3 3
-> +U 1 4
t -U 3 3 2024-01-01T00:00:05
& t +U 3 3 2024-01-01T00:00:20
-> -U 1 4
-> -U 3 3
-> +U 1 1
-> +U 3 4
t -D 1 1 2024-01-01T00:00:10
-> -D 1 1
-> -U 3 4
-> +U 3 3
