-- The maximum of each group's one count.
-- tags: aggregate, insert-only
feed t(g STRING, u STRING, v INT) INSERT ONLY
query SELECT g, max(c) AS m
  FROM (SELECT g, count(*) AS c FROM t GROUP BY g)
  GROUP BY g

t +I a x 1
-> +I a 1
t +I b x 1
-> +I b 1
t +I a y 2
-> -U a 1
-> +U a 2
