-- IN on one side of a join is decided before the join.
-- tags: join, subquery, insert-only
feed X(a INT, c INT) INSERT ONLY
feed Y(f INT, e INT) INSERT ONLY
feed Z(i INT)
query SELECT X.a, Y.e FROM X, Y WHERE X.c = Y.f AND X.a IN (SELECT i FROM Z)

X +I 1 5
Y +I 2 5
Z +I 1
Z -D 1
Z +I 1
