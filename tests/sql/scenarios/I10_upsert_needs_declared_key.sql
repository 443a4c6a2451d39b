-- Without a declared key nothing tells which rows replace each other.
-- tags: refused, keyed-reader
feed u(id INT, v STRING)
query SELECT id, v FROM u
mode upsert KEY (id)
error CHANGELOG_KEY_NOT_UNIQUE
  key: (id)
  keys: none
