-- Part of what a query is grouped by is not a key.
-- tags: refused, aggregate, insert-only, keyed-reader
feed t(a INT, b INT) INSERT ONLY
query SELECT a, b, count(*) AS c FROM t GROUP BY a, b
mode upsert KEY (a)
error CHANGELOG_KEY_NOT_UNIQUE
  key: (a)
  keys: (a, b)
