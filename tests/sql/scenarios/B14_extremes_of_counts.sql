-- The highest count only grows, the lowest falls when a new group comes.
-- tags: aggregate, insert-only
feed t(g STRING, u STRING) INSERT ONLY
query SELECT g, max(c) AS highest, min(c) AS lowest
  FROM (SELECT g, u, count(*) AS c FROM t GROUP BY g, u)
  GROUP BY g

t +I a x
-> +I a 1 1
t +I a x
-> -U a 1 1
-> +U a 2 2
t +I a y
-> -U a 2 2
-> +U a 2 1
t +I b x
-> +I b 1 1
t +I a y
-> -U a 2 1
-> +U a 2 2
t +I a y
-> -U a 2 2
-> +U a 3 2
