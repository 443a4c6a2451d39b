-- A filter on the groups needs no old rows: a group is in or out for good.
-- tags: aggregate, insert-only, keyed-reader
feed words(word STRING) INSERT ONLY
query SELECT word, cnt
  FROM (SELECT word, count(*) AS cnt FROM words GROUP BY word)
  WHERE word <> 'x'
mode upsert KEY (word)

words +I a
-> +I a 1
words +I x
words +I a
-> +U a 2
