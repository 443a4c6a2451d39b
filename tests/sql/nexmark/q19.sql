-- Nexmark, query 19: auction top ten.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY auction ORDER BY price DESC, dateTime, bidder) AS place
  FROM bid)
WHERE place <= 10
