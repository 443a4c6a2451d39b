// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.AnalysisException

import org.apache.spark.sql.changelog.testing._

/** Views that keep the history of their query. */
class HistoryViewSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  override def beforeEach(): Unit = {
    run("CREATE TABLE moves (id INT, city STRING, ts INT, gone BOOLEAN) USING delta")
    run("INSERT INTO moves VALUES (1, 'Bern', 10, false), (1, 'Oslo', 30, false)")
  }

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    run("DROP TABLE moves")
  }

  private def rows: Seq[String] =
    run("SELECT * FROM v").map(TextChangelog.format).sorted

  private val properties =
    "'changelog.history' = 'scd2', 'changelog.history.key' = 'id', 'changelog.history.by' = 'ts'"

  for (provider <- Seq("parquet", "delta")) {
    test(s"$provider: a view follows late, deleting, corrected and removed versions") {
      run(s"""CREATE MATERIALIZED VIEW v USING $provider
          |TBLPROPERTIES ($properties, 'changelog.history.deleteWhen' = 'gone')
          |AS SELECT * FROM moves""".stripMargin)
      assert(rows == Seq("1 Bern 10 false 10 30 false", "1 Oslo 30 false 30 NULL true"))
      run("INSERT INTO moves VALUES (1, 'Rome', 20, false), (1, NULL, 40, true)")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      val three = Seq(
        "1 Bern 10 false 10 20 false",
        "1 Oslo 30 false 30 40 false",
        "1 Rome 20 false 20 30 false")
      assert(rows == three)
      run("UPDATE moves SET city = 'Paris' WHERE ts = 20")
      run("DELETE FROM moves WHERE ts = 30")
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
      val two = Seq("1 Bern 10 false 10 20 false", "1 Paris 20 false 20 40 false")
      assert(rows == two)
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      run("REFRESH MATERIALIZED VIEW v FULL")
      assert(rows == two)
    }
  }

  test("a view joins a history as of a time of each row, by FOR SYSTEM_TIME") {
    run(
      s"CREATE MATERIALIZED VIEW v USING parquet TBLPROPERTIES ($properties) AS SELECT * FROM moves")
    run("CREATE TABLE visits (n INT, who INT, at INT) USING parquet")
    try
      Seq("JOIN", "LEFT JOIN").foreach { join =>
        run("INSERT OVERWRITE visits VALUES (1, 1, 15), (2, 1, 40), (3, 1, 5)")
        def query(how: String) = s"SELECT n, homes.city FROM visits o $join $how"
        run(
          "CREATE MATERIALIZED VIEW w USING parquet AS " +
            query("v FOR SYSTEM_TIME AS OF o.at AS homes ON homes.id = o.who"))
        run("INSERT INTO visits VALUES (4, 1, 22)")
        run("INSERT INTO moves VALUES (1, 'Rome', 20, false)")
        run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
        run("REFRESH MATERIALIZED VIEW w INCREMENTAL STRICT")
        val byHand = query(
          "v AS homes ON homes.id = o.who AND valid_from <= at AND (valid_to IS NULL OR at < valid_to)")
        assert(RowMultiset.of(run("SELECT * FROM w")) == RowMultiset.of(run(byHand)))
        assert(run("VERIFY MATERIALIZED VIEW w").isEmpty)
        run("DROP MATERIALIZED VIEW w")
      }
    finally run("DROP TABLE visits")
  }

  test("the key of the view is the subject and the start of the interval") {
    run(
      s"CREATE MATERIALIZED VIEW v USING delta TBLPROPERTIES ($properties) AS SELECT * FROM moves")
    val described = run("DESCRIBE MATERIALIZED VIEW v").map(_.toString).mkString
    assert(described.contains("id, valid_from"), described)
  }

  test("a view by commit keeps what its tables no longer have, and is never computed anew") {
    run("""CREATE MATERIALIZED VIEW v USING delta TBLPROPERTIES ('changelog.history' = 'scd2')
        |AS SELECT city, count(*) AS n FROM moves GROUP BY city""".stripMargin)
    run("UPDATE moves SET city = 'Rome' WHERE city = 'Bern'")
    run("REFRESH MATERIALIZED VIEW v")
    val shown = "SELECT city, n, valid_to IS NULL AS open, is_current FROM v ORDER BY city"
    val expected = Seq("Bern 1 false false", "Oslo 1 true true", "Rome 1 true true")
    assert(run(shown).map(TextChangelog.format) == expected)
    assert(run("SELECT * FROM v WHERE valid_from >= valid_to").isEmpty)
    Seq(
      "REFRESH MATERIALIZED VIEW v FULL",
      "VERIFY MATERIALIZED VIEW v",
      "WHY MATERIALIZED VIEW v").foreach { sql =>
      val error = intercept[AnalysisException](run(sql))
      assert(error.getCondition == "CHANGELOG_HISTORY_NOT_RECOMPUTABLE", sql)
    }
    assert(run(shown).map(TextChangelog.format) == expected)
  }

  test("properties of the history are checked, and change with the query only") {
    def refused(sql: String): String = intercept[AnalysisException](run(sql)).getMessage
    assert(
      refused(
        "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('changelog.history' = 'scd3') AS SELECT * FROM moves")
        .contains("scd2"))
    assert(
      refused(
        "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('changelog.history' = 'scd2') AS SELECT * FROM moves")
        .contains("identify a row"))
    run(
      s"CREATE MATERIALIZED VIEW v USING delta TBLPROPERTIES ($properties) AS SELECT * FROM moves")
    assert(
      refused("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('changelog.history.track' = 'city')")
        .contains("CREATE OR REPLACE"))
    run("ALTER MATERIALIZED VIEW v AS SELECT id, city, ts FROM moves")
    assert(rows == Seq("1 Bern 10 10 30 false", "1 Oslo 30 30 NULL true"))
  }

  test("other queries read the function as a table") {
    run("""CREATE MATERIALIZED VIEW v USING delta AS
        |SELECT is_current, count(*) AS n FROM history(TABLE(moves), key => 'id', history_by => 'ts')
        |GROUP BY is_current""".stripMargin)
    assert(rows == Seq("false 1", "true 1"))
    run("INSERT INTO moves VALUES (1, 'Rome', 20, false), (2, 'Rome', 20, false)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL STRICT")
    assert(rows == Seq("false 2", "true 2"))
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }
}
