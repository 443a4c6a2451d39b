-- A row that leaves a filter is a delete for the count above.
-- tags: aggregate, insert-only
feed words(word STRING) INSERT ONLY
query SELECT count(*) AS c
  FROM (SELECT word, count(*) AS cnt FROM words GROUP BY word)
  WHERE cnt < 3

words +I a
-> +I 1
words +I b
-> -U 1
-> +U 2
words +I a
words +I a
-> -U 2
-> +U 1
words +I b
words +I b
-> -U 1
-> +U 0
