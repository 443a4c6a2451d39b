-- The key from whichever side has a row is one, since neither side has a row twice.
-- tags: outer-join, keyed-reader
feed l(k INT, a STRING) KEY (k)
feed r(k INT, b STRING) KEY (k)
query SELECT coalesce(l.k, r.k) AS k, a, b FROM l FULL JOIN r ON l.k = r.k
mode upsert KEY (k)

l +I 1 a
-> +I 1 a NULL
r +I 1 x
-> +U 1 a x
r +I 2 z
-> +I 2 NULL z
l -D 1 a
-> +U 1 NULL x
r -D 1 x
-> -D 1 NULL x
