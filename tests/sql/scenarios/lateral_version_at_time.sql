-- The newest version of a rate at the time of each order.
-- tags: join, limit, lateral, same-batch
feed orders(id INT, cur STRING, at INT)
feed rates(cur STRING, since INT, rate INT)
query SELECT o.id, o.cur, r.rate FROM orders o
  JOIN LATERAL (SELECT * FROM rates v WHERE v.cur = o.cur AND v.since <= o.at
  ORDER BY v.since DESC LIMIT 1) r

orders +I 1 EUR 5
rates +I EUR 3 110
-> +I 1 EUR 110
rates +I EUR 4 111
& orders +I 2 EUR 3
-> -D 1 EUR 110
-> +I 1 EUR 111
-> +I 2 EUR 110
rates -D EUR 4 111
-> -D 1 EUR 111
-> +I 1 EUR 110
orders -D 1 EUR 5
-> -D 1 EUR 110
