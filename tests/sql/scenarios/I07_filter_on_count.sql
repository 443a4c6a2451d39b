-- A count that outgrows a filter must leave the reader, though that takes rows by key.
-- tags: aggregate, insert-only, keyed-reader
feed words(word STRING) INSERT ONLY
query SELECT word, cnt
  FROM (SELECT word, count(*) AS cnt FROM words GROUP BY word)
  WHERE cnt < 3
mode upsert KEY (word)

words +I a
-> +I a 1
words +I a
-> +U a 2
words +I a
-> -D a 2
words +I a
