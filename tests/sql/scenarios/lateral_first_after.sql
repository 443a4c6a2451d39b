-- The first shipment after each order, if it comes within ten days and the order is not cancelled.
-- tags: outer-join, limit, lateral, insert-only, same-batch
feed orders(id INT, item STRING, at INT, cancelled BOOLEAN)
feed shipments(item STRING, at INT, ship STRING) INSERT ONLY
query SELECT o.id, s.ship FROM orders o LEFT JOIN LATERAL
  (SELECT * FROM shipments t WHERE o.item = t.item AND t.at > o.at AND t.at <= o.at + 10
  AND NOT o.cancelled ORDER BY t.at LIMIT 1) s ON s.ship <> 'lost'

orders +I 1 tea 5 false
& orders +I 2 tea 8 false
& orders +I 3 tea 1 true
-> +I 1 NULL
-> +I 2 NULL
-> +I 3 NULL
shipments +I tea 8 ann
-> -D 1 NULL
-> +I 1 ann
shipments +I tea 19 bea
shipments +I tea 18 lost
shipments +I tea 9 cat
-> -D 2 NULL
-> +I 2 cat
orders -D 1 tea 5 false
& orders -D 2 tea 8 false
-> -D 1 ann
-> -D 2 cat
