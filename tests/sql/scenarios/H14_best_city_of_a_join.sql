-- Orders joined with users, summed up and ranked.
-- tags: aggregate, join, rank, same-batch
feed orders(oid INT, uid INT, amt INT) KEY (oid)
feed users(uid INT, city STRING) KEY (uid)
query SELECT city, total, rn FROM (
  SELECT *, row_number() OVER (ORDER BY total DESC, city) AS rn FROM (
    SELECT u.city, sum(o.amt) AS total FROM orders o JOIN users u ON o.uid = u.uid GROUP BY u.city))
  WHERE rn <= 2

users +I 1 ber
users +I 2 par
orders +I 100 1 10
-> +I ber 10 1
orders +I 101 2 7
-> +I par 7 2
orders -U 101 2 7
& orders +U 101 2 20
-> -U ber 10 1
-> -U par 7 2
-> +U ber 10 2
-> +U par 20 1
users -U 2 par
& users +U 2 ber
-> -D ber 10 2
-> -U par 20 1
-> +U ber 30 1
orders -D 100 1 10
-> -U ber 30 1
-> +U ber 20 1
