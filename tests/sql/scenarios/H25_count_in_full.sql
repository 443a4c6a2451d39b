-- A reader that states no wish gets all kinds.
-- tags: aggregate, insert-only
feed words(word STRING) INSERT ONLY
query SELECT word AS w, count(*) AS c FROM words GROUP BY word

words +I a
-> +I a 1
words +I a
-> -U a 1
-> +U a 2
