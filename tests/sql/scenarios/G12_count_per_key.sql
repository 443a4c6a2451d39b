-- A count grouped by the key goes with its row.
-- tags: aggregate, keyed-reader
feed a(a INT) KEY (a)
query SELECT a, count(*) AS c FROM a GROUP BY a
mode upsert KEY (a)

a +I 1
-> +I 1 1
a -D 1
-> -D 1 1
