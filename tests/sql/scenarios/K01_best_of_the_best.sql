-- What leaves the inner ranks leaves the outer ones too.
-- tags: aggregate, rank, insert-only
feed t(c STRING, id INT) INSERT ONLY
query SELECT c, id, n FROM (
  SELECT *, row_number() OVER (ORDER BY n DESC, c, id) AS outer_rn FROM (
    SELECT c, id, n FROM (
      SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC, id) AS rn FROM (
        SELECT c, id, count(*) AS n FROM t GROUP BY c, id))
    WHERE rn <= 2))
  WHERE outer_rn <= 3

t +I b 1
-> +I b 1 1
t +I b 2
-> +I b 2 1
t +I b 3
t +I b 3
-> -D b 2 1
-> +I b 3 2
t +I x 9
-> +I x 9 1
