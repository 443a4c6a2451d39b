-- The key from whichever side has a row is not known to be one.
feed l(k INT, a STRING) KEY (k)
feed r(k INT, b STRING) KEY (k)
query SELECT coalesce(l.k, r.k) AS k, a, b FROM l FULL JOIN r ON l.k = r.k
mode upsert KEY (k)
error CHANGELOG_KEY_NOT_UNIQUE
