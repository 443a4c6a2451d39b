-- Nexmark, query 20: bids with their auction.
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, a.itemName, a.description,
  a.initialBid, a.reserve, a.expires, a.seller, a.category
FROM bid b JOIN auction a ON b.auction = a.id
WHERE a.category = 10
