-- Nexmark, query 18: last bid.
SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY bidder, auction ORDER BY dateTime DESC, price DESC) AS place
  FROM bid)
WHERE place <= 1
