-- A value is there as long as one row has it.
-- tags: distinct
feed t(id INT, g STRING) KEY (id)
query SELECT DISTINCT g FROM t

t +I 1 a
-> +I a
t +I 2 a
t -D 1 a
t -D 2 a
-> -D a
