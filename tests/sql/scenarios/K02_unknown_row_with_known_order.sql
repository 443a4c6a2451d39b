-- A row never given is not there, though another has its order.
-- tags: rank
feed t(id INT, c STRING, n INT)
query SELECT id, c, n FROM (
  SELECT *, row_number() OVER (PARTITION BY c ORDER BY n DESC) AS rn FROM t)
  WHERE rn <= 1

t +I 1 b 10
-> +I 1 b 10
t -D 9 b 10
t +I 2 b 5
