-- A limit lets go of rows early, and the join below it keeps them all the same.
-- tags: aggregate, join, limit, insert-only, same-batch
feed l(k INT, v STRING) INSERT ONLY
feed r(k INT) INSERT ONLY
query SELECT count(*) AS n FROM (SELECT v FROM l JOIN r ON l.k = r.k LIMIT 2)

l +I 1 a
& l +I 2 a
& r +I 1
& r +I 2
& l +I 3 a
& r +I 3
-> +I 2
l +I 4 b
r +I 4
