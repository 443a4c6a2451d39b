-- Several aggregates of a group move together.
-- tags: aggregate, insert-only
feed t(g STRING, v INT) INSERT ONLY
query SELECT g, count(*) AS c, sum(v) AS s, CAST(avg(v) AS INT) AS a, max(v) AS mx
  FROM t GROUP BY g

t +I a 1
-> +I a 1 1 1 1
t +I a 3
-> -U a 1 1 1 1
-> +U a 2 4 2 3
t +I a 5
-> -U a 2 4 2 3
-> +U a 3 9 3 5
t +I b 7
-> +I b 1 7 7 7
