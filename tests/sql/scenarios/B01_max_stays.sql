-- A maximum that stays says nothing.
-- tags: aggregate, insert-only
feed t(g STRING, v INT) INSERT ONLY
query SELECT g, max(v) AS m FROM t GROUP BY g

t +I a 5
-> +I a 5
t +I a 3
t +I a 9
-> -U a 5
-> +U a 9
