-- Nexmark, query 1: currency conversion.
SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid
