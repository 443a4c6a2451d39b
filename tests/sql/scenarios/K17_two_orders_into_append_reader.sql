-- Two descending orders are no promise that the first row stays.
-- tags: refused, rank, insert-only, append-reader
feed t(a INT, b INT, c INT) INSERT ONLY
query SELECT a, b, c FROM (
  SELECT *, row_number() OVER (PARTITION BY a ORDER BY b DESC, c DESC) AS rn FROM t)
  WHERE rn = 1
mode append
error CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES
