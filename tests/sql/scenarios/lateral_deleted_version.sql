-- A version ends when a later version comes, or when the row of its key is deleted.
-- tags: outer-join, limit, lateral, same-batch
feed orders(id INT, cur STRING, at INT) KEY (id)
feed rates(op STRING, cur STRING, since INT, rate INT) INSERT ONLY
query SELECT o.id, r.rate FROM orders o LEFT JOIN LATERAL (SELECT op, rate FROM rates v
  WHERE v.cur = o.cur AND v.since <= o.at AND v.op <> 'update_preimage'
  ORDER BY v.since DESC LIMIT 1) r ON r.op <> 'delete'

orders +I 1 EUR 5
-> +I 1 NULL
rates +I insert EUR 3 110
-> -U 1 NULL
-> +U 1 110
rates +I delete EUR 5 110
-> -U 1 110
-> +U 1 NULL
orders +I 2 EUR 4
-> +I 2 110
rates +I insert EUR 7 112
& orders +I 3 EUR 6
& orders +I 4 EUR 8
-> +I 3 NULL
-> +I 4 112
rates +I update_preimage EUR 8 112
& rates +I update_postimage EUR 8 113
-> -U 4 112
-> +U 4 113
rates +I delete EUR 4 110
-> -U 2 110
-> +U 2 NULL
