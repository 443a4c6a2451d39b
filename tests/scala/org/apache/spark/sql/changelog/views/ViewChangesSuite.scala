// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.collection.mutable

import org.apache.spark.sql.Row
import org.apache.spark.sql.streaming.Trigger

import org.apache.spark.sql.changelog.testing.{ChangelogSession, QuickFileSystem, RowMultiset}

/** What is told of a view's changes makes its rows, whoever takes them. */
trait ViewChangesTests extends ViewTest {
  private val columns = "_change_type, _commit_version, customer, total"

  /** The rows that changes leave, each as often as it came and did not go. */
  private def fold(changes: Seq[Row]): Seq[Row] = {
    val rows = mutable.Buffer.empty[Row]
    // what goes in a version was there before it
    changes.sortBy(change => (change.getLong(1), isNew(change))).foreach { change =>
      val row = Row(change.get(2), change.get(3))
      if (isNew(change)) rows += row
      else assert(rows.indexOf(row) >= 0 && rows.remove(rows.indexOf(row)) == row, change)
    }
    rows.toSeq
  }

  private def isNew(change: Row): Boolean =
    Set("insert", "update_postimage").contains(change.getString(0))

  private def rows: Seq[Row] = run("SELECT customer, total FROM v")

  protected def version: Long = facts("DESCRIBE EXTENDED MATERIALIZED VIEW v")("Version").toLong

  private def same(found: Seq[Row], expected: Seq[Row]): Unit =
    assert(RowMultiset.of(found) == RowMultiset.of(expected))

  testEach("changes of some versions, and what a stream takes, make the view") {
    assume(!ChangelogSession.isSpark41, "Spark 4.1 has no STREAM of a function")
    def taken(from: String): Seq[Row] = {
      spark
        .sql(s"SELECT $columns FROM STREAM changes('v'$from)")
        .writeStream
        .option("checkpointLocation", s"$folder/checkpoint$from".replaceAll("[ =>]", ""))
        .trigger(Trigger.AvailableNow())
        .start(s"$folder/out$from".replaceAll("[ =>]", ""))
        .awaitTermination()
      val written = "_change_type STRING, _commit_version BIGINT, customer STRING, total BIGINT"
      val out =
        spark.read.schema(written).parquet(s"$folder/out$from".replaceAll("[ =>]", ""))
      out.select("_change_type", "_commit_version", "customer", "total").collect().toSeq
    }
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals, "TBLPROPERTIES ('changelog.retention' = '1 hour')")
    same(fold(taken("")), rows)
    val first = version
    val before = rows
    deliver("-U 1 Ada 30", "+U 1 Ada 31", "-D 2 Ben 20", "+I 3 Eve 1")
    run("REFRESH MATERIALIZED VIEW v")
    val second = version
    assert(second > first)
    same(fold(run(s"SELECT $columns FROM changes('v')")), rows)
    same(fold(run(s"SELECT $columns FROM changes('default.v', 0, $first)")), before)
    val last = run(s"SELECT $columns FROM changes('v', from_version => ${first + 1})")
    assert(last.filter(isNew).map(_.get(2)).toSet == Set("Ada", "Eve"))
    assert(last.filterNot(isNew).map(_.get(2)).toSet == Set("Ada", "Ben"))
    assert(last.map(_.getLong(1)).toSet == Set(second))
    val next = spark.sql(s"SELECT * FROM changes('v', from_version => ${second + 1})")
    assert(
      next.isEmpty && next.columns.toSeq.takeRight(3) ==
        Seq("_change_type", "_commit_version", "_commit_timestamp"))
    same(fold(taken("")), rows)
    same(taken(s", from_version => ${first + 1}"), last)
    // which has begun before there was anything to take
    val later = s", from_version => ${second + 1}"
    assert(taken(later).isEmpty)
    deliver("+I 4 Ada 5")
    run("REFRESH MATERIALIZED VIEW v")
    val expected = run(s"SELECT $columns FROM changes('v'$later)")
    assert(expected.nonEmpty)
    same(taken(later), expected)
    run("REFRESH MATERIALIZED VIEW v FULL")
    same(fold(taken("")), rows)
  }

  testEach("each version tells when it was made") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    // some file systems tell whole seconds
    val began = System.currentTimeMillis() / 1000 * 1000
    create(totals, "TBLPROPERTIES ('changelog.retention' = '1 hour')")
    deliver("+I 3 Ada 1")
    run("REFRESH MATERIALIZED VIEW v")
    val ended = System.currentTimeMillis()
    deliver("-D 2 Ben 20")
    run("REFRESH MATERIALIZED VIEW v")
    val versions =
      run("SELECT DISTINCT _commit_version, _commit_timestamp FROM changes('v') ORDER BY 1")
    val times = versions.map(_.getTimestamp(1).getTime)
    assert(versions.map(_.getLong(0)).distinct.size == versions.size && versions.size > 2)
    assert(
      times == times.sorted && times.head >= began && times.last <= System.currentTimeMillis())
    assert(times.init.last <= ended)
  }

  private lazy val folder = QuickFileSystem.temporaryDirectory().getPath
}

class DeltaViewChangesSuite extends ViewChangesTests {
  override protected def provider = "delta"
}

class SnapshotViewChangesSuite extends ViewChangesTests {

  test("what was shown stays for as long as is said, also where all is computed anew") {
    deliver("+I 1 Ada 30")
    create(totals, "TBLPROPERTIES ('changelog.retention' = '1 hour')")
    val before = version
    val reader = spark.newSession().table("v")
    reader.queryExecution.executedPlan
    for (id <- 2 to 4) {
      deliver(s"+I $id Ada 1")
      run("REFRESH MATERIALIZED VIEW v FULL")
    }
    assert(reader.collect().map(_.getLong(1)).toSeq == Seq(1L))
    assert(run(s"SELECT * FROM changes('v', from_version => ${before + 1})").size == 6)
    def generations = new ViewCatalog(spark).get(Seq("v")).definition.home.toUri.getPath
    val folders = new java.io.File(generations).list().count(_.length == 36)
    assert(folders == 4)
    run("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.retention' = '1 millisecond')")
    run("REFRESH MATERIALIZED VIEW v FULL")
    assert(new java.io.File(generations).list().count(_.length == 36) == 2)
  }

  test("versions whose rows are gone, and what is no version, are refused") {
    deliver("+I 1 Ada 30")
    create(totals, "TBLPROPERTIES ('changelog.retention' = '1 millisecond')")
    for (id <- 2 to 3) {
      Thread.sleep(1000)
      deliver(s"+I $id Ada 1")
      run("REFRESH MATERIALIZED VIEW v")
    }
    checkError("CHANGELOG_VIEW_VERSION_GONE", "version" -> "0", "newest" -> "3")(
      run("SELECT * FROM changes('v')"))
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "to_version")(
      spark.sql("SELECT * FROM STREAM changes('v', from_version => 2, to_version => 3)"))
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "from_version")(
      run("SELECT * FROM changes('v', 'x')"))
    checkError("CHANGELOG_VIEW_NOT_FOUND")(run("SELECT * FROM changes('orders')"))
  }
}
