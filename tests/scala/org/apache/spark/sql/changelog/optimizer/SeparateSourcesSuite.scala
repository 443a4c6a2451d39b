// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** Files, unlike streams of the newer interface, have the same columns however often they are read. */
class SeparateSourcesSuite extends AnyFunSuite with ChangelogSession {

  private def running(sql: String)(body: (Seq[String] => Unit, RunningChanges) => Unit): Unit = {
    val input = Files.createTempDirectory("input")
    spark.readStream
      .schema("op STRING, g STRING, n INT")
      .csv(input.toString)
      .createOrReplaceTempView("raw")
    val query = new RunningChanges(
      spark.sql(s"""SELECT * FROM to_changelog(TABLE(
           |WITH t AS (SELECT * FROM from_changelog(TABLE(raw), 'op')) $sql))""".stripMargin),
      QuickFileSystem.temporaryDirectory())
    try
      body(
        rows => {
          Files.writeString(Files.createTempFile(input, "", ".csv"), rows.mkString("\n"))
          ()
        },
        query)
    finally query.stop()
  }

  test("rows of a file beside their counts") {
    running(
      "SELECT a.g, a.n, b.c FROM t a LEFT JOIN (SELECT g, count(*) AS c FROM t GROUP BY g) b " +
        "ON a.g = b.g AND a.n < b.c") { (arrive, query) =>
      arrive(Seq("+I,a,1", "+I,a,2", "+I,b,1"))
      assert(query.next() == Seq("a 1 2 insert", "a 2 NULL insert", "b 1 NULL insert"))
      arrive(Seq("+I,a,3", "-D,b,1"))
      assert(
        query.next() == Seq(
          "a 1 2 delete",
          "a 1 3 insert",
          "a 2 3 insert",
          "a 2 NULL delete",
          "a 3 NULL insert",
          "b 1 NULL delete"))
    }
  }

  test("a file joined with itself") {
    running("SELECT a.n, b.n AS m FROM t a JOIN t b ON a.g = b.g AND a.n < b.n") {
      (arrive, query) =>
        arrive(Seq("+I,a,1", "+I,a,2"))
        assert(query.next() == Seq("1 2 insert"))
        arrive(Seq("+I,a,3", "-D,a,1"))
        assert(query.next() == Seq("1 2 delete", "2 3 insert"))
    }
  }

  test("a union of a file with itself") {
    running("SELECT g, n FROM t UNION ALL SELECT g, -n FROM t") { (arrive, query) =>
      arrive(Seq("+I,a,1"))
      assert(query.next() == Seq("a -1 insert", "a 1 insert"))
    }
  }
}
