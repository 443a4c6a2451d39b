-- Each word of a line is a row: an update takes words back that stay in other lines.
-- tags: aggregate, lateral, nulls, same-batch
feed lines(id INT, line STRING) KEY (id)
query SELECT word, count(*) AS c
  FROM lines LATERAL VIEW explode(split(line, ',')) AS word
  GROUP BY word

lines +I 1 a,b,a
-> +I a 2
-> +I b 1
lines +I 2 b
-> -U b 1
-> +U b 2
lines -U 1 a,b,a
& lines +U 1 c,b,a
-> -U a 2
-> +I c 1
-> +U a 1
lines -D 2 b
-> -U b 2
-> +U b 1
lines +I 3 NULL
