-- The same where both sides are sums.
-- tags: aggregate, outer-join, insert-only, keyed-reader
feed L(k INT, v INT) INSERT ONLY
feed R(k INT, w INT) INSERT ONLY
query SELECT L.k, L.v, R.w FROM (SELECT k, SUM(v) v FROM L GROUP BY k) L LEFT JOIN (SELECT k, SUM(w) w FROM R GROUP BY k) R ON L.k = R.k
mode upsert KEY (k)

L +I 1 10
-> +I 1 10 NULL
R +I 1 1
-> +U 1 10 1
R +I 1 2
-> +U 1 10 3
