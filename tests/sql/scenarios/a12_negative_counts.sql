-- A delete comes first in one group and last in another; only what is there is shown (T5).
-- tags: aggregate, same-batch
feed t(a INT, b INT)
query SELECT a, sum(b) AS s, count(*) AS c FROM t GROUP BY a

t -D 1 10
t +I 2 5
-> +I 2 5 1
t +I 1 10
& t +I 1 20
-> +I 1 20 1
t -D 2 5
& t -D 1 20
-> -D 1 20 1
-> -D 2 5 1
