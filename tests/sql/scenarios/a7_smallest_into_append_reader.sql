-- A row that may be replaced is refused to a reader that only appends.
-- tags: refused, rank, insert-only, append-reader
feed t(a INT, b INT) INSERT ONLY
query SELECT a, b FROM (
  SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS rn FROM t)
  WHERE rn = 1
mode append
error CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES
