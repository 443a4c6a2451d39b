-- What no single version decides is joined and ranked by the general rules.
-- tags: outer-join, limit, lateral, same-batch
feed orders(id INT, cur STRING, at INT)
feed rates(cur STRING, since INT, until INT, rate INT)
query SELECT o.id, r.rate FROM orders o LEFT JOIN LATERAL (SELECT rate FROM rates v
  WHERE v.cur = o.cur AND v.since <= o.at AND v.until > o.at ORDER BY v.since DESC LIMIT 1) r

orders +I 1 EUR 5
-> +I 1 NULL
rates +I EUR 3 9 110
-> -D 1 NULL
-> +I 1 110
rates +I EUR 4 5 111
& rates +I EUR 4 6 112
-> -D 1 110
-> +I 1 112
rates -D EUR 4 6 112
-> -D 1 112
-> +I 1 110
