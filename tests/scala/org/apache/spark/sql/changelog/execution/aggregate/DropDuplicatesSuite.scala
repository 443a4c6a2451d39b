// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.aggregate

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** `dropDuplicates` below `to_changelog`, which Spark makes an aggregate of. */
class DropDuplicatesSuite extends AnyFunSuite with ChangelogSession {

  private def running(arguments: String, columns: String*)(
      body: (RawStream, RunningChanges) => Unit): Unit = {
    val stream = new RawStream(spark, "raw", "op STRING, g STRING, n INT")
    stream.toDF.createOrReplaceTempView("changes")
    spark
      .sql(s"SELECT g, n FROM from_changelog(TABLE(changes)$arguments)")
      .dropDuplicates(columns)
      .createOrReplaceTempView("firsts")
    val query = new RunningChanges(
      spark.sql("SELECT * FROM to_changelog(TABLE(firsts))"),
      QuickFileSystem.temporaryDirectory())
    try body(stream, query)
    finally query.stop()
  }

  test("over new rows the first to come stays") {
    running("", "g") { (stream, query) =>
      stream.add("insert a 5")
      assert(query.next() == Seq("a 5 insert"))
      stream.add("insert a 1", "insert b 2")
      assert(query.next() == Seq("b 2 insert"))
    }
  }

  test("over changes another row takes the place of one that goes") {
    running(", change_type => 'op'", "g") { (stream, query) =>
      stream.add("insert a 5", "insert a 7")
      assert(query.next() == Seq("a 5 insert"))
      stream.add("delete a 5")
      assert(query.next() == Seq("a 5 update_preimage", "a 7 update_postimage"))
      stream.add("delete a 7")
      assert(query.next() == Seq("a 7 delete"))
    }
  }

  test("of all columns") {
    running(", change_type => 'op'", "g", "n") { (stream, query) =>
      stream.add("insert a 5", "insert a 5", "insert a 7")
      assert(query.next() == Seq("a 5 insert", "a 7 insert"))
      stream.add("delete a 5")
      assert(query.next() == Nil)
      stream.add("delete a 5")
      assert(query.next() == Seq("a 5 delete"))
    }
  }
}
