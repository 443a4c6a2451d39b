-- Two rows may share a value of another column: it cannot be the reader's key (T9).
-- tags: refused, time, keyed-reader
feed t(id INT, g INT, ts TIMESTAMP) KEY (id)
query SELECT g, id FROM t
mode upsert KEY (g)
error CHANGELOG_KEY_NOT_UNIQUE
  key: (g)
  keys: (id)
