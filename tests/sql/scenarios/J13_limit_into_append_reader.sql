-- Without an order the first rows to come stay.
-- tags: aggregate, limit, insert-only
feed t(id INT) INSERT ONLY
query SELECT count(*) FILTER (WHERE id > 0) AS n FROM (SELECT id FROM t LIMIT 2 OFFSET 1)

t +I 1
-> +I 0
t +I 2
-> -U 0
-> +U 1
t +I 3
-> -U 1
-> +U 2
t +I 4
