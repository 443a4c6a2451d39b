-- Counts move, so an append-only reader cannot have them.
-- tags: refused, aggregate, insert-only, append-reader
feed words(word STRING, n INT) INSERT ONLY
query SELECT word, count(n) AS c FROM words GROUP BY word
mode append
error CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES
  kinds: update
