-- A maximum of maxima beside a count of groups moves once per batch (T11).
-- tags: aggregate, insert-only
feed t(g STRING, u STRING, v INT) INSERT ONLY
query SELECT g, max(mv) AS m, count(*) AS c
  FROM (SELECT g, u, max(v) AS mv FROM t GROUP BY g, u)
  GROUP BY g

t +I a x 5
-> +I a 5 1
t +I a y 3
-> -U a 5 1
-> +U a 5 2
t +I a x 7
-> -U a 5 2
-> +U a 7 2
t +I a y 6
