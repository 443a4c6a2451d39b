-- A row that does not move a count emits nothing.
-- tags: aggregate, nulls, insert-only
feed words(word STRING, n INT) INSERT ONLY
query SELECT word, count(n) AS c FROM words GROUP BY word

words +I a 1
-> +I a 1
words +I a 2
-> -U a 1
-> +U a 2
words +I a NULL
