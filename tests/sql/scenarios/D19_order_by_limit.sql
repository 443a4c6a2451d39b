-- The best rows of all.
-- tags: limit, insert-only
feed t(id INT, n INT) INSERT ONLY
query SELECT id, n FROM t ORDER BY n DESC LIMIT 2

t +I 1 5
-> +I 1 5
t +I 2 7
-> +I 2 7
t +I 3 6
-> -D 1 5
-> +I 3 6
