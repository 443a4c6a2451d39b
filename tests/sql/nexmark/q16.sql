-- Nexmark, query 16: channel statistics report.
SELECT channel, date_format(dateTime, 'yyyy-MM-dd') AS day,
  max(date_format(dateTime, 'HH:mm')) AS minute,
  count(*) AS total_bids,
  count(*) FILTER (WHERE price < 1000) AS rank1_bids,
  count(*) FILTER (WHERE price >= 1000 AND price < 5000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 5000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders,
  count(DISTINCT bidder) FILTER (WHERE price < 1000) AS rank1_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000 AND price < 5000) AS rank2_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 5000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions,
  count(DISTINCT auction) FILTER (WHERE price < 1000) AS rank1_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 1000 AND price < 5000) AS rank2_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 5000) AS rank3_auctions
FROM bid
GROUP BY channel, date_format(dateTime, 'yyyy-MM-dd')
