-- Orders before the first version of a rate have none.
-- tags: outer-join, limit, lateral, nulls, same-batch
feed orders(id INT, cur STRING, at INT) KEY (id)
feed rates(cur STRING, since INT, rate INT)
query SELECT o.id, r.rate, r.total, r.one FROM orders o
  LEFT JOIN LATERAL (SELECT since, rate, rate * o.at AS total, 1 AS one FROM rates v
  WHERE v.cur = o.cur AND v.since <= o.at AND rate > 0 ORDER BY v.since DESC LIMIT 1) r

orders +I 1 EUR 5
-> +I 1 NULL NULL NULL
rates +I EUR 3 110
-> -U 1 NULL NULL NULL
-> +U 1 110 550 1
rates +I EUR 4 111
& orders +I 2 EUR 3
-> -U 1 110 550 1
-> +I 2 110 330 1
-> +U 1 111 555 1
rates -D EUR 4 111
-> -U 1 111 555 1
-> +U 1 110 550 1
orders -U 1 EUR 5
& orders +U 1 EUR 2
-> -U 1 110 550 1
-> +U 1 NULL NULL NULL
orders +I 3 NULL 7
& orders +I 4 EUR NULL
& rates +I NULL 1 8
& rates +I EUR NULL 9
-> +I 3 NULL NULL NULL
-> +I 4 NULL NULL NULL
