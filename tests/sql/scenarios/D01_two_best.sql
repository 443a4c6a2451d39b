-- A better row pushes one out.
-- tags: rank, insert-only
feed t(c STRING, id INT, n INT) INSERT ONLY
query SELECT c, id, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC, id) AS rn FROM t)
  WHERE rn <= 2

t +I b 1 12
-> +I b 1 12
t +I b 2 19
-> +I b 2 19
t +I b 4 11
t +I b 5 19
-> -D b 1 12
-> +I b 5 19
t +I b 6 30
-> -D b 5 19
-> +I b 6 30
