-- Whether another table has any rows decides for all rows.
-- tags: subquery, self-join
feed l(k INT, v STRING)
feed r(k INT)
query SELECT k, v, NOT EXISTS (SELECT 1 FROM r WHERE k < 0) AS ok
  FROM l WHERE EXISTS (SELECT 1 FROM r WHERE k > 5)

l +I 1 a
r +I 3
r +I 7
-> +I 1 a true
r +I 7
l +I 2 b
-> +I 2 b true
r -D 7
r +I -1
-> -D 1 a true
-> -D 2 b true
-> +I 1 a false
-> +I 2 b false
r -D 7
-> -D 1 a false
-> -D 2 b false
