-- Two ways of grouping side by side.
-- tags: aggregate, insert-only
feed t(a STRING, b STRING, v INT) INSERT ONLY
query SELECT a, b, sum(v) AS s FROM t GROUP BY GROUPING SETS ((a), (b))

t +I x y 1
-> +I NULL y 1
-> +I x NULL 1
t +I x z 2
-> -D x NULL 1
-> +I NULL z 2
-> +I x NULL 3
