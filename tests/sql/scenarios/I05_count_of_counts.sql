-- A word that occurs once more leaves one count and enters the next.
-- tags: aggregate, insert-only
feed words(word STRING) INSERT ONLY
query SELECT cnt, count(*) AS freq
  FROM (SELECT word, count(*) AS cnt FROM words GROUP BY word)
  GROUP BY cnt

words +I Hello
-> +I 1 1
words +I World
-> -U 1 1
-> +U 1 2
words +I Hello
-> -U 1 2
-> +I 2 1
-> +U 1 1
