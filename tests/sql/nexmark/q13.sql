-- Nexmark, query 13: bounded side input.
SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM bid b JOIN (VALUES (0, 'zero'), (1, 'one'), (2, 'two')) AS s(key, value) ON b.auction % 4 = s.key
