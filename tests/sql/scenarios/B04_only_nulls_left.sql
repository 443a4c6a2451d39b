-- A group of NULLs has a count and no sum; it goes with its last row.
-- tags: aggregate, nulls
feed t(id INT, g STRING, v INT) KEY (id)
query SELECT g, count(*) AS c, count(v) AS cv, sum(v) AS s, CAST(avg(v) AS INT) AS a
  FROM t GROUP BY g

t +I 1 a 10
-> +I a 1 1 10 10
t +I 2 a NULL
-> -U a 1 1 10 10
-> +U a 2 1 10 10
t -D 1 a 10
-> -U a 2 1 10 10
-> +U a 1 0 NULL NULL
t -D 2 a NULL
-> -D a 1 0 NULL NULL
