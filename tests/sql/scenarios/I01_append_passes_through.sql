-- New rows stay new rows through a filter and a projection, and fit an append-only reader.
-- tags: insert-only, append-reader
feed words(word STRING, n INT) INSERT ONLY
query SELECT word, n + 1 AS n FROM words WHERE n > 0
mode append

words +I a 1
-> +I a 2
words +I b 0
