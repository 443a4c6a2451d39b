-- IS NOT DISTINCT FROM lets NULL meet NULL.
-- tags: distinct, join, nulls, insert-only, self-join
feed L(k INT, a STRING) INSERT ONLY
feed R(k INT, b STRING) INSERT ONLY
query SELECT a, b FROM L JOIN R ON L.k IS NOT DISTINCT FROM R.k

L +I NULL n
R +I NULL m
-> +I n m
