-- A count over a left join keeps the groups that have nothing.
-- tags: aggregate, outer-join
feed U(uid INT, n STRING) KEY (uid)
feed O(oid INT, uid INT) KEY (oid)
query SELECT U.uid, COUNT(O.oid) AS n FROM U LEFT JOIN O ON U.uid = O.uid GROUP BY U.uid

U +I 1 ann
-> +I 1 0
O +I 100 1
-> -U 1 0
-> +U 1 1
O +I 101 1
-> -U 1 1
-> +U 1 2
O -D 100 1
-> -U 1 2
-> +U 1 1
O -D 101 1
-> -U 1 1
-> +U 1 0
U -D 1 ann
-> -D 1 0
