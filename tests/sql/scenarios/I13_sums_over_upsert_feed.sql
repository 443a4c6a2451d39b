-- Sums over a feed of newest rows take each old value back once.
-- tags: aggregate, upsert-feed, keyed-reader
feed u(id INT, v INT) KEY (id) UPSERT
query SELECT mod(id, 2) AS k, sum(v) AS s, count(*) AS c FROM u GROUP BY mod(id, 2)
mode upsert KEY (k)

u +I 1 10
-> +I 1 10 1
u +I 3 20
-> +U 1 30 2
u +U 1 15
-> +U 1 35 2
u -D 3 20
-> +U 1 15 1
u -D 1 15
-> -D 1 15 1
