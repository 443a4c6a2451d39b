-- A pair goes when a replaced row no longer meets the condition (T2).
-- tags: join, upsert-feed, keyed-reader
feed L(k INT, v INT) KEY (k) UPSERT
feed R(k INT, w INT) KEY (k) UPSERT
query SELECT L.k, L.v, R.w FROM L JOIN R ON L.k = R.k AND L.v > R.w
mode upsert KEY (k)

L +I 1 10
R +I 1 5
-> +I 1 10 5
R +U 1 50
-> -D 1 10 5
