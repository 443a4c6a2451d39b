-- A key that is computed with is not known to be a key.
-- tags: refused, keyed-reader
feed u(id INT, v INT) KEY (id)
query SELECT id + 1 AS id2, v FROM u
mode upsert KEY (id2)
error CHANGELOG_KEY_NOT_UNIQUE
  key: (id2)
