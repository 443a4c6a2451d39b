-- The best row of a join, all of whose rows may be the best.
-- tags: join, limit, insert-only, same-batch
feed l(k INT, v INT) INSERT ONLY
feed r(k INT) INSERT ONLY
query SELECT l.k, v FROM l JOIN r ON l.k = r.k ORDER BY v DESC, l.k LIMIT 1

l +I 1 5
& l +I 2 7
& r +I 1
& r +I 2
-> +I 2 7
l +I 3 9
r +I 3
-> -U 2 7
-> +U 3 9
r +I 1
