-- All but the best row.
-- tags: limit
feed t(id INT, n INT) KEY (id)
query SELECT id, n FROM t ORDER BY n DESC OFFSET 1

t +I 1 5
t +I 2 7
-> +I 1 5
t +I 3 6
-> +I 3 6
t -D 2 7
-> -D 3 6
