-- The second most frequent.
-- tags: aggregate, limit, insert-only
feed t(g STRING) INSERT ONLY
query SELECT g, count(*) AS c FROM t GROUP BY g ORDER BY c DESC, g LIMIT 1 OFFSET 1

t +I a
t +I b
-> +I b 1
t +I b
-> -U b 1
-> +U a 1
t +I c
t +I c
-> -U a 1
-> +U c 2
t +I c
-> -U c 2
-> +U b 2
