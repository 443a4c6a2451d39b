-- The one row of a scalar subquery stands beside each row, and never shows as NULL in between (T10).
-- tags: aggregate, subquery, nulls, insert-only
feed T(v INT) INSERT ONLY
feed U(x INT) INSERT ONLY
query SELECT v, (SELECT MAX(x) FROM U) AS m FROM T

U +I 5
T +I 1
-> +I 1 5
U +I 9
-> -D 1 5
-> +I 1 9
