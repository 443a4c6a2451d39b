-- A random value cannot be taken back.
-- tags: refused
feed t(id INT, v INT) KEY (id)
query SELECT id, v, uuid() AS u FROM t
error CHANGELOG_NONDETERMINISTIC_EXPRESSION
