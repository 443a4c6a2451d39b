-- A row is in as often as the side has it that has it less often.
-- tags: set-operation, nulls, same-batch
feed a(v INT)
feed b(v INT)
query SELECT v FROM a INTERSECT ALL SELECT v FROM b

a +I 1
a +I 1
b +I 1
-> +I 1
b +I 1
& b +I 1
-> +I 1
a -D 1
-> -D 1
b -D 1
& b -D 1
a +I NULL
b +I NULL
-> +I NULL
