-- Each aggregate has its own filter.
-- tags: aggregate, same-batch
feed t(g STRING, v INT)
query SELECT g, count(*) AS c, count(*) FILTER (WHERE v > 5) AS high, max(v) FILTER (WHERE v <= 5) AS low
  FROM t GROUP BY g

t +I a 3
-> +I a 1 0 3
t +I a 9
-> -U a 1 0 3
-> +U a 2 1 3
t +I a 5
-> -U a 2 1 3
-> +U a 3 1 5
t -D a 5
-> -U a 3 1 5
-> +U a 2 1 3
t -U a 9
& t +U a 4
-> -U a 2 1 3
-> +U a 2 0 4
t -D a 3
& t -D a 4
-> -D a 2 0 4
