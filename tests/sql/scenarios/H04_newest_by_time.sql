-- The newest row of each key, by a column; an older one changes nothing.
-- tags: rank, insert-only, keyed-reader
feed t(k INT, v STRING, seq INT) INSERT ONLY
query SELECT k, v FROM (
  SELECT *, row_number() OVER (PARTITION BY k ORDER BY seq DESC) AS rn FROM t)
  WHERE rn = 1
mode upsert KEY (k)

t +I 1 a 1
-> +I 1 a
t +I 1 c 3
-> +U 1 c
t +I 1 b 2
t +I 2 x 1
-> +I 2 x
