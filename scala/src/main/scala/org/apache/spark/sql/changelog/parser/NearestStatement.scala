// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import java.util.Locale

import org.apache.commons.text.similarity.LevenshteinDistance

import org.apache.spark.sql.changelog.views.ViewStatement

/** Tells which statement of ours is meant by a text that Spark's parser has refused, and so nobody understands. */
private[parser] object NearestStatement {

  /**
   * One of the statements, as it is to be written. The words in capitals that it begins with are what it
   * is known by.
   *
   * @param isParsed
   *   whether Spark's parser reads the rest of it, and so says best what is wrong there
   */
  private case class Statement(syntax: String, isParsed: Boolean = false) {
    val head: Seq[String] =
      syntax.split(' ').toSeq.takeWhile(word => word.forall(_.isUpper) && word.length > 1)
  }

  private val ofViews: Seq[Statement] =
    Seq("MATERIALIZED VIEW" -> "v", "STREAMING TABLE" -> "t").flatMap { case (kind, name) =>
      Seq(
        Statement(s"CREATE $kind $name AS query", isParsed = true),
        Statement(s"CREATE OR REPLACE $kind $name AS query", isParsed = true),
        Statement(s"EXPLAIN CREATE $kind $name AS query", isParsed = true),
        Statement(
          s"ALTER $kind $name {AS query | SET PARTITIONS n | SET TBLPROPERTIES (…) | RENAME TO w | SWAP WITH w}",
          isParsed = true),
        Statement(s"REFRESH $kind $name [FULL | INCREMENTAL [STRICT] | WITH UPSTREAM]"),
        Statement(s"REFRESH ${kind}S [IN database]"),
        Statement(s"START $kind $name"),
        Statement(s"STOP $kind $name"),
        Statement(s"DROP $kind [IF EXISTS] $name [CASCADE]"),
        Statement(s"DESCRIBE $kind [EXTENDED] $name"),
        Statement(s"VERIFY $kind $name [SAMPLE n PERCENT]"),
        Statement(s"WHY $kind $name [WHERE condition]", isParsed = true),
        Statement(s"RESTORE $kind $name TO {BATCH n | SAVEPOINT s}"),
        Statement(s"COMPARE $kind $name WITH w"),
        Statement(s"SHOW ${kind}S [IN database] [LIKE 'pattern']"))
    }

  private val statements: Seq[Statement] = ofViews ++ Seq(
    Statement("SHOW REFRESHES OF v"),
    Statement("CREATE SAVEPOINT s OF {CHECKPOINT '…' | MATERIALIZED VIEW v} [AT BATCH n]"),
    Statement("SHOW SAVEPOINTS OF {CHECKPOINT '…' | MATERIALIZED VIEW v}"),
    Statement("DROP SAVEPOINT [IF EXISTS] s OF {CHECKPOINT '…' | MATERIALIZED VIEW v}"),
    Statement("FORK CHECKPOINT '…' [AT BATCH n | AT SAVEPOINT s] INTO '…'"),
    Statement("EVOLVE CHECKPOINT '…' INTO '…' [TARGET table] AS query", isParsed = true),
    Statement("EXPLAIN EVOLVE CHECKPOINT '…' AS query", isParsed = true),
    Statement("RESCALE CHECKPOINT '…' INTO '…' PARTITIONS n"),
    Statement("EXPLAIN CHANGELOG [VERBOSE | FORMAT …] query", isParsed = true))

  /** How the statement is written that `sqlText` begins like; none if it begins like no statement of ours. */
  def apply(sqlText: String): Option[String] = {
    val words = wordsOf(sqlText).map(_.toUpperCase(Locale.ROOT))
    statements
      .flatMap(statement => distance(words, statement.head).map(_ -> statement))
      .minByOption(_._1)
      .filterNot { case (distance, statement) => distance == 0 && statement.isParsed }
      .map(_._2.syntax)
  }

  /** The words that a text begins with, as many as tell what it is. */
  def wordsOf(sqlText: String): Seq[String] =
    ViewStatement.LeadingComments
      .replaceFirstIn(sqlText, "")
      .take(MostChars)
      .split("\\s+")
      .take(MostWords)
      .toSeq

  /** By how many letters words differ from the beginning of a statement, if that can be a mistake. */
  private def distance(words: Seq[String], head: Seq[String]): Option[Int] =
    if (words.size < head.size) None
    else {
      val perWord = words.zip(head).map { case (word, wanted) => letters(word, wanted).toInt }
      val isLike = !perWord.contains(-1) && perWord.count(_ > 0) <= (head.size + 1) / 2
      Option.when(isLike)(perWord.sum)
    }

  /** By how many letters two words differ, -1 if by more than that. */
  private val letters = new LevenshteinDistance(2)

  /** No statement's head is as long. */
  private val MostWords = 6
  private val MostChars = 200
}
