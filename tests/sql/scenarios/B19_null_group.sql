-- NULL is a group like any other.
-- tags: aggregate, nulls, insert-only
feed t(g STRING, v INT) INSERT ONLY
query SELECT g, sum(v) AS s FROM t GROUP BY g

t +I NULL 1
-> +I NULL 1
t +I NULL 2
-> -U NULL 1
-> +U NULL 3
