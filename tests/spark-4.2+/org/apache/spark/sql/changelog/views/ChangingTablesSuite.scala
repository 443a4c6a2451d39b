// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Views over tables whose catalog gives their changes, by `FROM t CHANGES`. */
class ChangingTablesSuite
    extends AnyFunSuite
    with ViewSession
    with ErrorChecks
    with BeforeAndAfterEach {
  import ChangesCatalog.{commit, forgetChanges}

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.Quick ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "spark.sql.catalog.changing" -> classOf[ChangesCatalog].getName))

  private val query =
    "SELECT city, count(*) AS n, sum(fare) AS total FROM changing.ns.rides GROUP BY city"

  private val first = Seq("insert 1 Oslo 5", "insert 2 Rome 7", "insert 3 Oslo 1")

  private def make(properties: String = ""): Unit = {
    run(s"CREATE TABLE changing.ns.rides (id INT, city STRING, fare INT) $properties")
    commit("rides", first: _*)
  }

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    run("DROP TABLE IF EXISTS changing.ns.rides")
  }

  private def facts: Map[String, String] =
    run("DESCRIBE MATERIALIZED VIEW v").map(row => row.getString(0) -> row.getString(1)).toMap

  private def create(): Unit = run(s"CREATE MATERIALIZED VIEW v USING parquet AS $query")

  private def check(how: String = "incremental"): Unit = {
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(facts("Last refresh").contains(s", $how,"), facts)
  }

  private val rounds = Seq(
    // rewritten files hold rows that did not change, and updates as deletes and inserts
    Seq("delete 1 Oslo 5", "insert 1 Oslo 5", "delete 2 Rome 7", "insert 2 Oslo 8"),
    Seq("delete 3 Oslo 1", "insert 9 Bern 2", "delete 9 Bern 2"),
    Seq("update_preimage 1 Oslo 5", "update_postimage 1 Bern 6", "delete 2 Oslo 8"))

  test("a view reads the changes between two versions, and all rows as of the first") {
    make()
    val text = run(s"EXPLAIN CREATE MATERIALIZED VIEW v AS $query").head.getString(0)
    val name = "`changing`.`ns`.`rides`"
    assert(text.contains(s"$name is followed by the changes that its catalog returns"), text)
    create()
    assert(facts(s"Read of $name").startsWith("version v1, "), facts)
    rounds.foreach { changes =>
      commit("rides", changes: _*)
      // of the version that the view has read
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
      check()
    }
    assert(facts(s"Read of $name").startsWith("version v4, "), facts)
    rounds.head.reverse.foreach(_ => commit("rides"))
    check()
    assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
  }

  test("a table that was made anew, or whose changes are forgotten, is read as a whole") {
    make()
    create()
    run("DROP TABLE changing.ns.rides")
    make()
    checkError("CHANGELOG_TABLE_REPLACED", "version" -> "v1")(
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    check("full")
    commit("rides", rounds.head: _*)
    commit("rides", rounds(1): _*)
    forgetChanges("rides")
    checkError("CHANGELOG_TABLE_CHANGES_LOST", "reason" -> "version 1 is forgotten")(
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    check("full")
    commit("rides", rounds(2): _*)
    check()
  }

  test("a table whose catalog gives no changes is compared with a copy, and known by its id") {
    make("TBLPROPERTIES (changes = 'false')")
    create()
    commit("rides", rounds.head: _*)
    check()
    assert(facts("Read of `changing`.`ns`.`rides`").startsWith("version 2, followed by comp"))
    run("DROP TABLE changing.ns.rides")
    make("TBLPROPERTIES (changes = 'false')")
    checkError("CHANGELOG_TABLE_REPLACED", "version" -> "2")(
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    check("full")
  }

  test("one version of a table is read as it is") {
    make()
    run(
      "CREATE MATERIALIZED VIEW v USING parquet AS " +
        query.replace("rides", "rides VERSION AS OF 'v1'"))
    commit("rides", rounds.head: _*)
    run("REFRESH MATERIALIZED VIEW v")
    assert(run("SELECT sum(n) FROM v").head.getLong(0) == 3)
  }
}
