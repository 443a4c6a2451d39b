-- A function that needs all rows of a group is computed again for the groups that change.
-- tags: aggregate, same-batch
feed rides(id INT, city STRING, fare INT) KEY (id)
query SELECT city, median(fare) AS typical, listagg(CAST(fare AS STRING), '-') WITHIN GROUP (ORDER BY fare) AS fares
  FROM rides GROUP BY city

rides +I 1 Oslo 5
& rides +I 2 Oslo 9
& rides +I 3 Rome 7
-> +I Oslo 7.0 5-9
-> +I Rome 7.0 7
rides -U 1 Oslo 5
& rides +U 1 Rome 5
-> -U Oslo 7.0 5-9
-> -U Rome 7.0 7
-> +U Oslo 9.0 9
-> +U Rome 6.0 5-7
rides +I 4 Bern 1
& rides -D 4 Bern 1
rides -D 2 Oslo 9
-> -D Oslo 9.0 9
