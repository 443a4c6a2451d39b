-- SPDX-FileCopyrightText: the spark-changelog authors
-- SPDX-License-Identifier: Apache-2.0

-- Counts words, and the words with each count, from changes: an insert (+I) or a delete (-D) of a word.
-- Over a table, as here, this is a batch query. Over a stream the result is maintained.
--
--   spark-sql --conf spark.jars=dist/spark-changelog_2.13-0.1.0-SNAPSHOT.jar \
--             --conf spark.sql.extensions=io.sparkchangelog.ChangelogExtensions \
--             -f examples/word_count.sql

CREATE TEMPORARY VIEW changes AS SELECT * FROM VALUES
  ('+I', 'to'), ('+I', 'be'), ('+I', 'or'), ('+I', 'not'), ('+I', 'to'), ('+I', 'be'),
  ('-D', 'to'), ('-D', 'or')
  AS changes(op, word);

CREATE TEMPORARY VIEW frequencies AS
  SELECT times, count(*) AS words
  FROM (SELECT word, count(*) AS times
        FROM from_changelog(TABLE(changes), change_type => 'op')
        GROUP BY word)
  GROUP BY times;

SELECT * FROM frequencies ORDER BY times;

SELECT * FROM to_changelog(TABLE(SELECT * FROM frequencies)) ORDER BY times;

EXPLAIN CHANGELOG SELECT * FROM to_changelog(TABLE(SELECT * FROM frequencies));
