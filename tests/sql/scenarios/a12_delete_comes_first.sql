-- A delete may come before its insert: no negative count is shown, and the two cancel (T5).
-- tags: aggregate
feed t(a INT, b INT)
query SELECT a, sum(b) AS s, count(*) AS c FROM t GROUP BY a

t -D 1 10
t +I 1 10
