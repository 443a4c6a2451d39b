-- A right row that is replaced still counts once (T1).
-- tags: subquery, upsert-feed, keyed-reader
feed L(k INT, a STRING) KEY (k) UPSERT
feed R(k INT, b STRING) KEY (k) UPSERT
query SELECT k, a FROM L WHERE k IN (SELECT k FROM R)
mode upsert KEY (k)

L +I 1 x
R +I 1 p
-> +I 1 x
R +U 1 q
R -D 1 q
-> -D 1 x
