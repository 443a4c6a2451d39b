-- A window that has not closed shows what it has so far.
-- tags: aggregate, time, insert-only
feed t(id INT, v INT, ts TIMESTAMP) INSERT ONLY
query SELECT window.start AS ws, sum(v) AS s FROM t GROUP BY window(ts, '10 seconds')

t +I 1 5 2024-01-01T00:00:01
-> +I 2024-01-01T00:00 5
t +I 2 7 2024-01-01T00:00:02
-> -D 2024-01-01T00:00 5
-> +I 2024-01-01T00:00 12
t +I 3 1 2024-01-01T00:00:15
-> +I 2024-01-01T00:00:10 1
