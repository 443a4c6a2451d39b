// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.Row

/** Who follows a view that is put back, or changes places, sees the rows that differ, and no others go and come. */
trait RestoredRowsTests extends FollowedViewTest {
  private val few = s"$totals HAVING sum(amount) < 25"

  override def afterEach(): Unit = {
    // it may read the others
    run("DROP MATERIALIZED VIEW IF EXISTS second")
    run("DROP MATERIALIZED VIEW IF EXISTS w")
    super.afterEach()
  }

  private def refresh(): Unit = {
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    check(totals)
  }

  testEach("rows that have changed since go back") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20", "+I 3 Eve 5")
    create(totals)
    run("CREATE SAVEPOINT first OF MATERIALIZED VIEW v")
    create(counts, name = "second")
    deliver("-U 1 Ada 30", "+U 1 Ada 31", "-D 2 Ben 20", "+I 4 Joe 7")
    refresh()
    checkSecond(rowsRead = Some(4))
    for (moment <- Seq("BATCH 0", "SAVEPOINT first")) {
      val back = changesOf(run(s"RESTORE MATERIALIZED VIEW v TO $moment"))
      assert(
        back == Seq(
          "+customer:Ada,n:1,total:30",
          "+customer:Ben,n:1,total:20",
          "-customer:Ada,n:1,total:31",
          "-customer:Joe,n:1,total:7"))
      assert(lastRefresh("mode") == Row("restored") && counted == Row(2L, 2L))
      checkSecond(rowsRead = Some(4))
      assert(changesOf(refresh()).size == 4)
      checkSecond(rowsRead = Some(4))
    }
  }

  testEach("a view that is put back to what it shows changes nothing, and goes on") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    create(counts, name = "second")
    run("CREATE SAVEPOINT s OF MATERIALIZED VIEW v")
    // the rows of another query are the same
    run(s"ALTER MATERIALIZED VIEW v AS SELECT * FROM ($totals) WHERE n > 0")
    assert(changesOf(run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT s")).isEmpty)
    assert(counted == Row(0L, 0L))
    deliver("-D 2 Ben 20")
    assert(changesOf(refresh()) == Seq("-customer:Ben,n:1,total:20"))
    checkSecond(rowsRead = Some(1))
  }

  testEach("a view that is put back to the rows of its first query is known as its own writer") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    run("CREATE SAVEPOINT s OF MATERIALIZED VIEW v")
    assert(changesOf(run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT s")).isEmpty)
    refresh()
    deliver("-D 2 Ben 20")
    assert(changesOf(refresh()) == Seq("-customer:Ben,n:1,total:20"))
  }

  testEach("columns that the view had then are added") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals.replace("AS total", "AS total, nullif(max(amount), 20) AS most"))
    run("CREATE SAVEPOINT wide OF MATERIALIZED VIEW v")
    run(s"ALTER MATERIALIZED VIEW v AS $totals")
    create(counts, name = "second")
    assert(
      changesOf(run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT wide")) ==
        Seq("+customer:Ada,n:1,total:30,most:30", "-customer:Ada,n:1,total:30"))
    checkSecond()
  }

  testEach("of views that change places each gives what it has not in common with the other") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20", "+I 3 Eve 5")
    create(totals)
    create(few, name = "w")
    create(counts, name = "second")
    val ada = "customer:Ada,n:1,total:30"
    def swap() = run("ALTER MATERIALIZED VIEW v SWAP WITH w")
    assert(changesOf(swap()) == Seq(s"-$ada"))
    assert(counted == Row(0L, 1L))
    checkSecond(rowsRead = Some(1))
    check(few)
    check(totals, "w")
    assert(changesOf(swap()) == Seq(s"+$ada"))
    assert(counted == Row(1L, 0L))
    checkSecond(rowsRead = Some(1))
    refresh()
  }

  testEach("a view that was made from another one has come with all rows") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    run("CREATE MATERIALIZED VIEW w FROM v")
    check(totals, "w")
    val kinds = run("SELECT _change_type FROM changes('w')").map(_.getString(0))
    assert(kinds == Seq("insert", "insert"))
  }
}

class DeltaRestoredRowsSuite extends RestoredRowsTests {
  override protected def provider = "delta"

  test("delta: a row of the same key is updated when it goes back") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    run("CREATE SAVEPOINT first OF MATERIALIZED VIEW v")
    for (moment <- Seq("BATCH 0", "SAVEPOINT first")) {
      deliver("+I 9 Ada 1")
      run("REFRESH MATERIALIZED VIEW v")
      val before = version
      run(s"RESTORE MATERIALIZED VIEW v TO $moment")
      val changes = run(s"SELECT _change_type FROM changes('v', from_version => ${before + 1})")
      assert(changes.map(_.getString(0)).toSet == Set("update_preimage", "update_postimage"))
    }
  }
}

class SnapshotRestoredRowsSuite extends RestoredRowsTests
