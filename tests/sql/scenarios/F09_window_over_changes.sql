-- Rows of a window are updated, moved to the next window and deleted.
-- tags: aggregate, time
feed t(id INT, v INT, ts TIMESTAMP) KEY (id)
query SELECT window.start AS ws, sum(v) AS s FROM t GROUP BY window(ts, '10 seconds')

t +I 1 5 2024-01-01T00:00:01
-> +I 2024-01-01T00:00 5
t +I 2 7 2024-01-01T00:00:02
-> -D 2024-01-01T00:00 5
-> +I 2024-01-01T00:00 12
t -U 1 5 2024-01-01T00:00:01
-> -D 2024-01-01T00:00 12
-> +I 2024-01-01T00:00 7
t +U 1 6 2024-01-01T00:00:12
-> +I 2024-01-01T00:00:10 6
t -D 2 7 2024-01-01T00:00:02
-> -D 2024-01-01T00:00 7
