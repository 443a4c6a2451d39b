-- Counts that move, next to rows that only come, counted again.
-- tags: aggregate, set-operation, insert-only
feed a(w STRING, n INT) INSERT ONLY
feed b(w STRING, c BIGINT) INSERT ONLY
query SELECT c, count(*) AS f
  FROM (SELECT w, count(n) AS c FROM a GROUP BY w UNION ALL SELECT w, c FROM b)
  GROUP BY c

a +I a 1
-> +I 1 1
b +I z 1
-> -U 1 1
-> +U 1 2
a +I a 2
-> -U 1 2
-> +I 2 1
-> +U 1 1
