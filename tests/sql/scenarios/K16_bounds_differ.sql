-- Each row is held against its own bound.
-- tags: rank, insert-only
feed t(c STRING, id INT, n INT, k INT) INSERT ONLY
query SELECT c, id, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn <= k

t +I b 1 5 1
-> +I b 1 5
t +I b 2 7 3
-> -D b 1 5
-> +I b 2 7
t +I b 3 6 3
-> +I b 3 6
