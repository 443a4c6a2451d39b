-- A value is new once.
-- tags: distinct, insert-only
feed t(g STRING) INSERT ONLY
query SELECT DISTINCT g FROM t

t +I a
-> +I a
t +I a
t +I b
-> +I b
