-- Both sides are updated one after the other; at last one row moves to where it has no match.
-- tags: join, same-batch
feed L(id INT, k INT, v INT) KEY (id)
feed R(id INT, k INT, w INT) KEY (id)
query SELECT L.id, R.id AS rid, v, w FROM L JOIN R ON L.k = R.k

L +I 1 7 10
R +I 100 7 5
-> +I 1 100 10 5
R +I 101 7 6
-> +I 1 101 10 6
L -U 1 7 10
& L +U 1 7 11
-> -U 1 100 10 5
-> -U 1 101 10 6
-> +U 1 100 11 5
-> +U 1 101 11 6
R -U 100 7 5
& R +U 100 8 5
-> -D 1 100 11 5
