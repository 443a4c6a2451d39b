-- An equal row says nothing.
-- tags: rank, insert-only, keyed-reader
feed t(a INT, b INT) INSERT ONLY
query SELECT a, b FROM (
  SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b DESC) AS rn FROM t)
  WHERE rn = 1
mode upsert KEY (a)

t +I 1 10
-> +I 1 10
t +I 1 15
-> +U 1 15
t +I 1 15
t +I 1 7
