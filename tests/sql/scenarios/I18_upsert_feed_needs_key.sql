-- Newest rows of what? An upsert feed needs a key.
-- tags: refused, upsert-feed
feed u(id INT, v STRING) UPSERT
query SELECT id, v FROM u
error CHANGELOG_ARGUMENT_INVALID
  function: from_changelog
  argument: key
