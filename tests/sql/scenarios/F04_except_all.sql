-- Each row on the right takes one equal row of the left away.
-- tags: set-operation, insert-only
feed a(v INT) INSERT ONLY
feed b(v INT) INSERT ONLY
query SELECT v FROM a EXCEPT ALL SELECT v FROM b

a +I 1
-> +I 1
a +I 1
-> +I 1
b +I 1
-> -D 1
