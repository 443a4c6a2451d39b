-- A group enters and leaves as its count passes through a range.
-- tags: aggregate, having, insert-only
feed t(g STRING, v INT) INSERT ONLY
query SELECT g, count(*) AS c FROM t GROUP BY g HAVING count(*) > 1 AND count(*) < 4

t +I a 1
t +I a 1
-> +I a 2
t +I a 1
-> -U a 2
-> +U a 3
t +I a 1
-> -D a 3
