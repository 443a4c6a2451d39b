-- Nexmark, query 7: highest bid.
SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM bid b
JOIN (
  SELECT max(price) AS maxprice, window.end AS dateTime
  FROM bid GROUP BY window(dateTime, '10 seconds')) m
  ON b.price = m.maxprice
WHERE b.dateTime >= m.dateTime - INTERVAL '10' SECOND AND b.dateTime < m.dateTime
