-- Rows of the right side that go give rows of the left back.
-- tags: set-operation, same-batch
feed a(v INT)
feed b(v INT)
query SELECT v FROM a EXCEPT ALL SELECT v FROM b

b +I 1
a +I 1
a +I 1
& a +I 2
-> +I 1
-> +I 2
b -D 1
-> +I 1
a -D 1
& b +I 1
-> -D 1
-> -D 1
