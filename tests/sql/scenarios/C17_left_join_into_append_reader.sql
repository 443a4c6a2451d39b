-- A row padded with NULL may find its match: not for an append-only reader.
-- tags: refused, outer-join, nulls, insert-only, append-reader
feed l(k INT, a STRING) INSERT ONLY
feed r(k INT, b STRING) INSERT ONLY
query SELECT l.k, a, b FROM l LEFT JOIN r ON l.k = r.k
mode append
error CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES
