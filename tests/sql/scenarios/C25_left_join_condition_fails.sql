-- A pair whose condition no longer holds leaves its left row with NULLs (T4).
-- tags: outer-join, nulls, insert-only, same-batch
feed L(k INT, v INT) INSERT ONLY
feed R(k INT, w INT) KEY (k)
query SELECT L.k, L.v, R.w FROM L LEFT JOIN R ON L.k = R.k AND L.v > R.w

L +I 98 0
& R +I 99 0
-> +I 98 0 NULL
L +I 1 100
& R +I 1 10
-> +I 1 100 10
R -U 1 10
& R +U 1 300
-> -D 1 100 10
-> +I 1 100 NULL
L +I 97 0
-> +I 97 0 NULL
