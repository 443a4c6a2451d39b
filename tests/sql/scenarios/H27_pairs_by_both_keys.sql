-- Pairs of rows are known by the keys of both.
-- tags: join, nulls, insert-only, keyed-reader
feed L(id INT, k INT) KEY (id) INSERT ONLY
feed R(rid INT, k INT) KEY (rid) INSERT ONLY
query SELECT L.id, R.rid FROM L JOIN R ON L.k = R.k
mode upsert KEY (id, rid)

L +I 1 5
R +I 7 5
-> +I 1 7
R +I 8 5
-> +I 1 8
L +I 2 5
-> +I 2 7
-> +I 2 8
L +I 3 NULL
