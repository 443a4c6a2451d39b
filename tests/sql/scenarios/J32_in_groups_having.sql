-- IN over groups that meet a condition.
-- tags: aggregate, having, subquery, insert-only
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT, v INT) INSERT ONLY
query SELECT k, a FROM L WHERE k IN (SELECT k FROM R GROUP BY k HAVING SUM(v) > 5)

L +I 1 x
R +I 1 3
R +I 1 4
-> +I 1 x
R +I 1 -5
-> -D 1 x
