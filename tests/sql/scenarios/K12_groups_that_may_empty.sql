-- A count over counts may shrink, so that all groups are kept.
-- tags: aggregate, rank, insert-only
feed t(g STRING, u STRING) INSERT ONLY
query SELECT g, c, m FROM (
  SELECT *, row_number() OVER (ORDER BY c DESC, g) AS rn FROM (
    SELECT g, count(*) AS c, max(x) AS m FROM (
      SELECT g, u, count(*) AS x FROM t GROUP BY g, u)
    GROUP BY g))
  WHERE rn <= 2

t +I a p
-> +I a 1 1
t +I b p
-> +I b 1 1
t +I a q
-> -U a 1 1
-> +U a 2 1
t +I b p
-> -U b 1 1
-> +U b 1 2
t +I c p
