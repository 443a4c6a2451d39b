-- Distinct values of rows that only come only come themselves.
-- tags: distinct, insert-only, append-reader
feed t(g STRING) INSERT ONLY
query SELECT DISTINCT g FROM t
mode append

t +I a
-> +I a
t +I a
t +I b
-> +I b
