-- Keys of two tables do not identify the rows of their union.
-- tags: refused, set-operation, upsert-feed, keyed-reader
feed a(id INT, v INT) KEY (id) UPSERT
feed b(id INT, v INT) KEY (id)
query SELECT id, v FROM a UNION ALL SELECT id, v FROM b
mode upsert
error CHANGELOG_KEY_MISSING
