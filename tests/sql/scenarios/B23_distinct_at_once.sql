-- Of equal values that arrive together, one is counted.
-- tags: aggregate, distinct, insert-only, same-batch
feed t(g STRING, u STRING) INSERT ONLY
query SELECT g, count(DISTINCT u) AS uv FROM t GROUP BY g

t +I a x
& t +I a x
& t +I a y
-> +I a 2
t +I a x
