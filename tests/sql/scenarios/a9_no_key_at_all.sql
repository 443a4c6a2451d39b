-- A query without any key cannot be replaced by one, though it only inserts.
-- tags: refused, insert-only, keyed-reader
feed t(a INT, b INT) INSERT ONLY
query SELECT a, b FROM t
mode upsert KEY (a)
error CHANGELOG_KEY_NOT_UNIQUE
  key: (a)
  keys: none
