-- A count for a reader that replaces by key comes without old rows.
-- tags: aggregate, insert-only, keyed-reader
feed words(word STRING, n INT) INSERT ONLY
query SELECT word, count(n) AS c FROM words GROUP BY word
mode upsert KEY (word)

words +I a 1
-> +I a 1
words +I a 2
-> +U a 2
