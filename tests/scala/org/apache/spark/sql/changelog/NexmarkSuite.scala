// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/**
 * The queries of Nexmark, kept up to date. Query 12, by the time of arrival, is in
 * `ProcessingTimeSuite`.
 */
class NexmarkSuite extends AnyFunSuite with ChangelogSession with GoldenFiles {
  private lazy val oracle = new Oracle(spark)

  private val queries = (0 to 22).filterNot(_ == 12).map(number => s"q$number")

  Share.of(queries, oneIn = 2).foreach { name =>
    test(s"$name is as in batch after every batch") {
      val query = Files.readString(home.resolve(s"tests/sql/nexmark/$name.sql")).stripTrailing
      val feeds =
        Nexmark.tables.filter(feed =>
          s"\\b(FROM|JOIN) ${feed.name}\\b".r.findFirstIn(query).isDefined)
      val changes = oracle.check(
        Program(feeds, query, Nexmark.steps),
        Variant(conf = ChangelogSession.codeFor(name)))
      assert(changes.count(_.nonEmpty) > 2, s"batches: ${changes.map(_.size)}")
    }
  }
}
