// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.Row

import org.apache.spark.sql.changelog.testing.RowMultiset

/** Who follows a view that gets another query sees the rows that differ, and no others go and come. */
trait AlteredRowsTests extends FollowedViewTest {
  private def alter(query: String): Unit = {
    run(s"ALTER MATERIALIZED VIEW v AS $query")
    check(query)
  }

  testEach("rows that another query has not go, and those that it has besides come") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20", "+I 3 Eve 5", "+I 4 Eve 6")
    create(totals)
    create(counts, name = "second")
    val gone = changesOf(alter(s"$totals HAVING sum(amount) < 25"))
    assert(gone == Seq("-customer:Ada,n:1,total:30"))
    assert(counted == Row(0L, 1L))
    checkSecond(rowsRead = Some(1))
    val changed = changesOf(alter(totals.replace("sum(amount)", "sum(amount % 20)")))
    assert(
      changed == Seq(
        "+customer:Ada,n:1,total:10",
        "+customer:Ben,n:1,total:0",
        "-customer:Ben,n:1,total:20"))
    assert(counted == Row(2L, 1L))
    checkSecond(rowsRead = Some(3))
    deliver("-D 2 Ben 20", "+I 5 Ada 1")
    val next = changesOf(run("REFRESH MATERIALIZED VIEW v"))
    assert(
      next == Seq(
        "+customer:Ada,n:2,total:11",
        "-customer:Ada,n:1,total:10",
        "-customer:Ben,n:1,total:0"))
    checkSecond(rowsRead = Some(3))
  }

  testEach("a query in other words changes nothing, and one that keeps no state what differs") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    create(counts, name = "second")
    assert(changesOf(alter(s"SELECT customer, n, total FROM ($totals) WHERE n > 0")).isEmpty)
    assert(counted == Row(0L, 0L))
    deliver("+I 3 Eve 1")
    run("REFRESH MATERIALIZED VIEW v")
    val other = "SELECT 'Ben' AS customer, 1L AS n, 20L AS total"
    assert(
      changesOf(alter(other)) == Seq("-customer:Ada,n:1,total:30", "-customer:Eve,n:1,total:1"))
    assert(lastRefresh("mode") == Row("full") && counted == Row(0L, 2L))
    checkSecond()
    assert(changesOf(alter(totals)).map(_.head) == Seq('+', '+'))
    checkSecond()
  }

  testEach("a new column is added first") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    create(counts, name = "second")
    val more = totals.replace("AS total", "AS total, nullif(max(amount), 20) AS most")
    assert(
      changesOf(alter(more)) ==
        Seq("+customer:Ada,n:1,total:30,most:30", "-customer:Ada,n:1,total:30"))
    assert(counted == Row(1L, 1L))
    checkSecond()
    deliver("+U 1 Ada 10")
    run("REFRESH MATERIALIZED VIEW v")
    check(more)
    checkSecond()
    // also if it has no values
    val evenMore = more.replace("AS most", "AS most, CAST(NULL AS INT) AS none")
    assert(changesOf(alter(evenMore)).isEmpty)
    assert(spark.table("v").columns.last == "none")
    deliver("-D 2 Ben 20")
    run("REFRESH MATERIALIZED VIEW v")
    check(evenMore)
    checkSecond()
  }

  testEach("CREATE OR REPLACE changes what differs, and new columns have their comments") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    val more = s"SELECT *, nullif(total > 25, false) AS large FROM ($totals)"
    val columns =
      "(customer STRING, n BIGINT, total BIGINT, large BOOLEAN COMMENT 'more than 25')"
    val changes = changesOf {
      run(s"CREATE OR REPLACE MATERIALIZED VIEW v $columns USING $provider AS $more WHERE n > 0")
    }
    assert(
      changes ==
        Seq("+customer:Ada,n:1,total:30,large:true", "-customer:Ada,n:1,total:30"))
    assert(spark.table("v").schema("large").getComment() == Some("more than 25"))
  }

  testEach("rows are told apart by what they are") {
    deliver("+I 1 ada 0", "+I 2 NULL 0", "+I 3 Ben 7")
    // Delta has no columns of a collation unless it is told so, and Iceberg has none
    val collation = if (provider == "parquet") "UTF8_LCASE" else "UTF8_BINARY"
    val rows = s"SELECT id, customer COLLATE $collation AS customer, 0D + amount AS x"
    create(s"$rows FROM $orders")
    val upper = rows.replace("customer COLLATE", "if(id = 1, upper(customer), customer) COLLATE")
    assert(
      changesOf(alter(s"$upper FROM $orders")) ==
        Seq("+id:1,customer:ADA,x:0.0", "-id:1,customer:ada,x:0.0"))
    val signed =
      upper.replace("0D + amount", "if(id = 2, -0D, 0D + amount)")
    assert(
      changesOf(alter(s"$signed FROM $orders"), "id", "CAST(x AS STRING) AS x") ==
        Seq("+id:2,x:-0.0", "-id:2,x:0.0"))
    val unknown = signed.replace("0D + amount", "double('NaN')")
    assert(changesOf(alter(s"$unknown FROM $orders")).size == 4)
    assert(changesOf(alter(s"$unknown FROM $orders WHERE id > 0")).isEmpty)
  }

  testEach("rows of which there are several stay as many as they are") {
    deliver("+I 1 Ada 30", "+I 2 Ada 30", "+I 3 Ada 4", "+I 4 Ben 4", "+I 5 NULL 4")
    val rows = s"SELECT customer FROM $orders"
    create(rows)
    def net(changes: Seq[String]) =
      changes.groupBy(_.drop(1)).map { case (row, all) =>
        row -> all.map(change => if (change.head == '+') 1 else -1).sum
      }
    val fewer = changesOf(alter(s"$rows WHERE amount > 4 OR id = 4"))
    assert(net(fewer) == Map("customer:Ada" -> -1, "" -> -1))
    val more = changesOf(alter(s"$rows UNION ALL $rows WHERE id < 3"))
    assert(net(more) == Map("customer:Ada" -> 3, "" -> 1))
  }

  testEach("rows that can't be compared are replaced") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    val rows = s"SELECT customer, map('n', count(*)) AS m FROM $orders GROUP BY customer"
    create(rows)
    create("SELECT customer, m['n'] AS n FROM v", name = "second")
    val large = rows.replace(" AS m", " AS m, max(amount) AS most")
    run(s"ALTER MATERIALIZED VIEW v AS $large")
    val found = run("SELECT customer, m['n'], most FROM v")
    assert(RowMultiset.of(found) == RowMultiset.of(Seq(Row("Ada", 1L, 30), Row("Ben", 1L, 20))))
    run("REFRESH MATERIALIZED VIEW second INCREMENTAL STRICT")
    assert(
      RowMultiset.of(run("SELECT * FROM second")) ==
        RowMultiset.of(Seq(Row("Ada", 1L), Row("Ben", 1L))))
  }
}

class DeltaAlteredRowsSuite extends AlteredRowsTests {
  override protected def provider = "delta"

  test("delta: a row of the same key is updated") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    run(s"ALTER MATERIALIZED VIEW v AS ${totals.replace("sum(amount)", "max(amount) % 30L")}")
    val changes = spark.sql("SELECT _change_type, total FROM changes('v')").where("total <> 20")
    assert(
      changes.collect().map(_.getString(0)).toSet ==
        Set("insert", "update_preimage", "update_postimage"))
  }

  test("delta: a query with other columns makes another table") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    create("SELECT customer, n FROM v", name = "second")
    // a new column is not the last one
    run(s"ALTER MATERIALIZED VIEW v AS SELECT customer, true AS known, n FROM ($totals)")
    checkError("CHANGELOG_READ_TABLE_REPLACED")(
      run("REFRESH MATERIALIZED VIEW second INCREMENTAL"))
    run("REFRESH MATERIALIZED VIEW second")
    check("SELECT customer, n FROM v", "second")
    // which gets columns as the first one did
    run(s"ALTER MATERIALIZED VIEW v AS SELECT customer, true AS known, n, total FROM ($totals)")
    run("REFRESH MATERIALIZED VIEW second INCREMENTAL STRICT")
    check("SELECT customer, n FROM v", "second")
  }
}

class SnapshotAlteredRowsSuite extends AlteredRowsTests
