-- Of two new rows with one key the reader would lose one: the key must be declared.
-- tags: refused, insert-only, keyed-reader
feed words(word STRING, n INT) INSERT ONLY
query SELECT word, n FROM words
mode upsert KEY (word)
error CHANGELOG_KEY_NOT_UNIQUE
  key: (word)
  keys: none
