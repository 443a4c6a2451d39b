-- ORDER BY orders a result, not its changes.
-- tags: insert-only, append-reader
feed t(id INT, n INT) INSERT ONLY
query SELECT id, n FROM t ORDER BY n
mode append

t +I 1 5
-> +I 1 5
t +I 2 3
-> +I 2 3
