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
   * @param parsed
   *   the clause from which on Spark's parser reads the statement, and so says best what is wrong; null if none
   */
  private case class Statement(syntax: String, parsed: String = null) {
    val head: Seq[String] = syntax
      .replace("{", "")
      .split(' ')
      .toSeq
      .takeWhile(word => word.forall(_.isUpper) && word.length > 1 && word != "OF")

    /** Whether a text that begins like it reaches that clause. */
    def isParsed(sqlText: String): Boolean =
      parsed != null && s"(?is)\\b$parsed".r.findFirstIn(sqlText).isDefined
  }

  private val Query = "AS\\b"

  private val ofViews: Seq[Statement] =
    Seq("MATERIALIZED VIEW" -> "v", "STREAMING TABLE" -> "t").flatMap { case (kind, name) =>
      Seq(
        Statement(s"CREATE $kind $name AS query", Query),
        Statement(s"CREATE OR REPLACE $kind $name AS query", Query),
        Statement(s"EXPLAIN CREATE $kind $name AS query", Query),
        Statement(
          s"ALTER $kind $name {AS query | SET PARTITIONS n | SET TBLPROPERTIES (…) | RENAME TO w | SWAP WITH w}",
          Query),
        Statement(s"REFRESH $kind $name [FULL | INCREMENTAL [STRICT] | WITH UPSTREAM]"),
        Statement(s"REFRESH ${kind}S [IN database]"),
        Statement(s"START $kind $name"),
        Statement(s"STOP $kind $name"),
        Statement(s"DROP $kind [IF EXISTS] $name [CASCADE]"),
        Statement(s"DESCRIBE $kind [EXTENDED] $name"),
        Statement(s"VERIFY $kind $name [SAMPLE n PERCENT]"),
        Statement(s"WHY {$kind $name [WHERE condition] | query}", "WHERE\\b"),
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
    Statement("EVOLVE CHECKPOINT '…' INTO '…' [TARGET table] AS query", Query),
    Statement("EXPLAIN EVOLVE CHECKPOINT '…' AS query", Query),
    Statement("RESCALE CHECKPOINT '…' INTO '…' PARTITIONS n"),
    Statement(
      "EXPLAIN CHANGELOG [VERBOSE | FORMAT {TEXT | JSON | HTML | SVG}] query",
      "CHANGELOG\\s++(?!FORMAT\\s++(?!(?:TEXT|JSON|HTML|SVG)\\b))"))

  /** How statements begin that only this extension has, whatever follows. */
  private val own: Seq[Seq[String]] = Seq(
    "VERIFY",
    "WHY",
    "COMPARE",
    "RESCALE",
    "EVOLVE",
    "FORK",
    "START",
    "STOP",
    "REFRESH VIEW",
    "RESTORE VIEW").map(_.split(' ').toSeq)

  /** How the statement is written that `sqlText` begins like; none if it begins like no statement of ours. */
  def apply(sqlText: String): Option[String] = {
    val words = wordsOf(sqlText).map(_.toUpperCase(Locale.ROOT))
    statements
      .flatMap(statement => distance(words, statement.head).map(_ -> statement))
      .minByOption(_._1)
      .orElse(nearestOwn(words).map(1 -> _))
      .filterNot { case (distance, statement) => distance == 0 && statement.isParsed(sqlText) }
      .map(_._2.syntax)
  }

  /** Of the statements with the verb of a text, the one that shares most words with it. */
  private def nearestOwn(words: Seq[String]): Option[Statement] =
    if (!own.exists(words.startsWith(_)) || asksForQuery(words)) None
    else
      statements
        .filter(_.head.head == words.head)
        .maxByOption(_.head.count(words.contains))

  /** Whether it is `WHY query`, whose query Spark's parser reads. */
  private def asksForQuery(words: Seq[String]): Boolean =
    words.head == "WHY" && words.lift(1).exists { word =>
      word.startsWith("(") || Set("SELECT", "WITH", "FROM", "TABLE", "VALUES")(word)
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
