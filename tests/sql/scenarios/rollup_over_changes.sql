-- Subtotals and the total, NULL groups beside them, as rows move.
-- tags: aggregate, nulls, same-batch
feed t(a STRING, b STRING, v INT)
query SELECT a, b, grouping_id(a, b) AS level, sum(v) AS s
  FROM t GROUP BY ROLLUP (a, b)

t +I x y 1
-> +I NULL NULL 3 1
-> +I x NULL 1 1
-> +I x y 0 1
t +I x NULL 2
-> -U NULL NULL 3 1
-> -U x NULL 1 1
-> +I x NULL 0 2
-> +U NULL NULL 3 3
-> +U x NULL 1 3
t +I NULL NULL 4
-> -U NULL NULL 3 3
-> +I NULL NULL 0 4
-> +I NULL NULL 1 4
-> +U NULL NULL 3 7
t -U x y 1
& t +U NULL y 1
-> -D x y 0 1
-> -U NULL NULL 1 4
-> -U x NULL 1 3
-> +I NULL y 0 1
-> +U NULL NULL 1 5
-> +U x NULL 1 2
t -D x NULL 2
-> -D x NULL 0 2
-> -D x NULL 1 2
-> -U NULL NULL 3 7
-> +U NULL NULL 3 5
