-- Of two rows with one value both are kept: when one goes, the other is there (T9).
-- tags: time
feed t(id INT, g INT, ts TIMESTAMP) KEY (id)
query SELECT g, id FROM t

t +I 1 7 2024-01-01T00:00:01
-> +I 7 1
t +I 2 7 2024-01-01T00:00:02
-> +I 7 2
t -D 1 7 2024-01-01T00:00:01
-> -D 7 1
t +I 3 8 2024-01-01T00:00:10
-> +I 8 3
