-- Nexmark, query 0: pass through.
SELECT auction, bidder, price, dateTime, extra FROM bid
