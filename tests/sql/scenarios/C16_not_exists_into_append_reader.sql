-- A row without a match may get one: not for an append-only reader.
-- tags: refused, subquery, insert-only, append-reader
feed l(k INT, a STRING) INSERT ONLY
feed r(k INT) INSERT ONLY
query SELECT k, a FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)
mode append
error CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES
