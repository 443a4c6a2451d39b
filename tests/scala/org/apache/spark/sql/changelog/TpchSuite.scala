// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing._

/** The queries of TPC-H, kept up to date while all tables change, and how they are executed. */
class TpchSuite extends AnyFunSuite with ChangelogSession with GoldenFiles {
  private lazy val oracle = new Oracle(spark)
  private lazy val tpch = new Tpch(spark)

  private val queries = (1 to 22).map { number => f"q$number%02d" }

  private def sql(name: String): String =
    Files.readString(home.resolve(s"tests/sql/tpch/$name.sql"))

  /** The tables a query reads. */
  private def feeds(query: String): Seq[Feed] =
    Tpch.tables.filter(feed => s"\\b${feed.name}\\b".r.findFirstIn(query).isDefined)

  Share.of(queries, oneIn = 2).foreach { name =>
    test(s"$name is as in batch after every batch") {
      val query = sql(name).stripTrailing
      val changes = oracle.check(
        Program(feeds(query), query, tpch.steps),
        Variant(conf = ChangelogSession.codeFor(name)))
      assert(changes.count(_.nonEmpty) > 1, s"changes: ${changes.map(_.size)}")
    }
  }

  queries.foreach { name =>
    test(s"$name is explained as in its golden file") {
      Tpch.tables.foreach { feed =>
        new RawStream(spark, s"raw_${feed.name}", s"_op STRING, ${feed.columns}")
        spark.sql(feed.read(s"raw_${feed.name}", "_op")).createOrReplaceTempView(feed.name)
      }
      spark.sql(s"EXPLAIN CHANGELOG ${sql(name)}").collect() match {
        case Array(Row(text: String)) =>
          checkGolden(s"tests/resources/explain/tpch/$name.txt", text)
        case other => fail(other.mkString)
      }
    }
  }
}
