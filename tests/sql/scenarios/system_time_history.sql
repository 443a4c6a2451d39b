-- A history is joined as of the time of each row, by the standard's clause.
-- tags: join, same-batch
feed orders(id INT, cur STRING, at INT) KEY (id)
feed rates(cur STRING, rate INT, valid_from INT, valid_to INT) KEY (cur, valid_from)
query SELECT o.id, r.rate FROM orders o
  LEFT JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON r.cur = o.cur

orders +I 1 EUR 5
-> +I 1 NULL
rates +I EUR 110 3 NULL
-> -D 1 NULL
-> +I 1 110
rates -U EUR 110 3 NULL
& rates +U EUR 110 3 5
& rates +I EUR 120 5 7
-> -D 1 110
-> +I 1 120
orders +I 2 EUR 9
-> +I 2 NULL
