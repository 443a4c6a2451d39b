-- Nor can a random choice of rows, whatever the reader's key (T8).
-- tags: refused, keyed-reader
feed t(id INT, v DOUBLE) KEY (id)
query SELECT id, v FROM t WHERE v > rand()
mode upsert KEY (id)
error CHANGELOG_NONDETERMINISTIC_EXPRESSION
