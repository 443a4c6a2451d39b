-- Totals over a table that is given and taken back.
-- tags: aggregate
feed t(id INT, v INT)
query SELECT count(*) AS c, sum(v) AS s FROM t

t +I 1 5
-> +I 1 5
t -D 1 5
-> -U 1 5
-> +U 0 NULL
