-- Nexmark, query 9: winning bids.
SELECT id, itemName, seller, category, auction, bidder, price, bidTime
FROM (
  SELECT a.*, b.auction, b.bidder, b.price, b.dateTime AS bidTime,
    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime, b.bidder) AS place
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.dateTime BETWEEN a.dateTime AND a.expires)
WHERE place <= 1
