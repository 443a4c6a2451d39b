-- A value is in a union once, whichever side has it.
-- tags: set-operation, insert-only
feed a(v INT) INSERT ONLY
feed b(v INT) INSERT ONLY
query SELECT v FROM a UNION SELECT v FROM b

a +I 1
-> +I 1
b +I 1
b +I 2
-> +I 2
