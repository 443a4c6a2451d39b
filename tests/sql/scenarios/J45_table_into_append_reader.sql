-- Rows that change cannot go to an append-only reader, filtered or not.
-- tags: refused, append-reader
feed u(id INT, v STRING) KEY (id)
query SELECT id, v FROM u WHERE v = 'a'
mode append
error CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES
  kinds: update and delete
