// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import java.io.File
import java.nio.file.Path

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.{Dataset, SparkSession}

import org.apache.spark.sql.changelog.sources.tables.PinnedTables
import org.apache.spark.sql.changelog.testing._

/** Queries that begin with a snapshot, looked at and gone on with otherwise. */
class SnapshotContinuedSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val home = QuickFileSystem.temporaryDirectory()

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.MostlyInterpreted +
      ("spark.sql.warehouse.dir" -> new File(home, "warehouse").getPath))

  private val values =
    "SELECT * FROM VALUES (1, 'Oslo', 5, 10), (2, 'Rome', 7, 10) AS t(id, city, fare, ts)"

  private def table(format: String): String = {
    val path = new File(home, format).getPath
    spark.sql(values).write.format(format).mode("overwrite").save(path)
    s"SELECT * FROM $format.`$path`"
  }

  private def fork(life: SnapshotLife)(from: Path, into: Path): Unit = {
    life.session().sql(s"FORK CHECKPOINT '$from' INTO '$into'").collect()
    ()
  }

  test("a fork goes on with the feed alone") {
    val life = new SnapshotLife(spark, table("parquet"), ", sequence_by => 'ts'")
    life.arrive("+U 1 Bern 4 11")
    life.check()
    life.goOn()(fork(life))
    life.arrive("+U 2 Bern 4 11", "+U 1 Nice 1 9")
    life.check()
    assert(life.table == Seq("1 Bern 4 11", "2 Bern 4 11"))
    assert(life.outdated == 1)
  }

  test("a changed query goes on with the rows that are kept") {
    val life = new SnapshotLife(spark, table("parquet"))
    life.arrive("+U 1 Bern 4 11", "-D 2 Rome 7 11")
    life.check()
    life.goOn("SELECT id, city, fare, ts FROM rides WHERE fare < 9", asOther = true) {
      (from, into) =>
        life
          .session()
          .sql(s"EVOLVE CHECKPOINT '$from' INTO '$into' AS ${life.statement}")
          .collect()
        ()
    }
    life.arrive("+I 3 Rome 3 12", "+I 4 Rome 12 12")
    life.check()
    assert(life.table == Seq("1 Bern 4 11", "3 Rome 3 12"))
  }

  test("a dry run samples a snapshot where it is, as one of the sources") {
    val life = new SnapshotLife(spark, table("parquet"))
    life.arrive("+I 4 Bern 4 11")
    val text = life
      .session()
      .sql(
        s"EXPLAIN CHANGELOG DRY RUN OVER 2 ROWS SELECT city, count(*) FROM rides GROUP BY city")
      .head()
      .getString(0)
    assert(text.contains("Oslo") && text.contains("Bern"), text)
    val written = life
      .session()
      .sql("EXPLAIN CHANGELOG DRY RUN OVER '+I 7 Nice 1 1' SELECT city FROM rides")
      .head()
      .getString(0)
    assert(written.contains("1: +I Nice") && !written.contains("Oslo"), written)
  }

  test("a version is read also if its table has got a column since") {
    val query = table("delta")
    def plan = spark.sql(query).queryExecution.analyzed
    val versions = PinnedTables.versions(spark, plan).get
    spark.sql(s"ALTER TABLE ${query.stripPrefix("SELECT * FROM ")} ADD COLUMNS (more INT)")
    val rows = Dataset.ofRows(spark, PinnedTables.at(spark, plan, versions))
    assert(rows.where("more IS NULL").count() == 2)
  }

  for (format <- Seq("delta", "parquet"))
    test(
      s"a view begins with the rows of a view that is kept as $format, and goes on as another") {
      val life = new SnapshotLife(spark, values)
      life.arrive("+U 1 Bern 4 11")
      val session = life.session()
      def run(sql: String) = session.sql(sql).collect().map(TextChangelog.format).sorted.toSeq
      val (first, above) = (s"first_$format", s"above_$format")
      run(s"CREATE MATERIALIZED VIEW $first USING $format AS $values")
      def rows(snapshot: String) =
        s"from_changelog(TABLE(feed), 'op', key => 'id', snapshot => TABLE($snapshot))"
      run(s"CREATE MATERIALIZED VIEW $above AS SELECT id, city FROM ${rows(first)}")
      assert(run(s"SELECT * FROM $above") == Seq("1 Bern", "2 Rome"))
      run(s"ALTER MATERIALIZED VIEW $first AS $values WHERE id = 1")
      life.arrive("-D 1 Bern 4 12", "+I 3 Nice 1 12")
      run(s"REFRESH MATERIALIZED VIEW $above")
      assert(run(s"SELECT * FROM $above") == Seq("2 Rome", "3 Nice"))
      def alter(query: String) = run(s"ALTER MATERIALIZED VIEW $above AS $query")
      val upper = "SELECT id, upper(city) AS city FROM"
      if (format == "delta") {
        alter(s"$upper ${rows(first)}")
        assert(run(s"SELECT * FROM $above") == Seq("2 ROME", "3 NICE"))
        val refresh = session.sql(s"SHOW REFRESHES OF $above").select("mode", "reason").head()
        assert(refresh.getString(0) == "evolved", refresh)
      }
      // the snapshot as it is now is not read unasked
      checkError("CHANGELOG_VIEW_NOT_ALTERED")(alter(s"$upper ${rows(values)}"))
    }

  for (format <- Seq("delta", "parquet")) {
    test(
      s"a view begins with a snapshot of $format, and is verified as far as that can be read again") {
      val life = new SnapshotLife(spark, table(format))
      life.arrive("+U 1 Bern 4 11")
      val session = life.session()
      def run(sql: String) = session.sql(sql).collect().map(TextChangelog.format).sorted.toSeq
      run(s"CREATE MATERIALIZED VIEW kept_$format USING parquet AS SELECT id, city FROM rides")
      assert(run(s"SELECT * FROM kept_$format") == Seq("1 Bern", "2 Rome"))
      life.arrive("-D 2 Rome 7 11", "+I 3 Nice 1 12")
      run(s"REFRESH MATERIALIZED VIEW kept_$format")
      assert(run(s"SELECT * FROM kept_$format") == Seq("1 Bern", "3 Nice"))
      def verify() = run(s"VERIFY MATERIALIZED VIEW kept_$format")
      if (format == "delta") assert(verify().isEmpty)
      else {
        checkError("CHANGELOG_SNAPSHOT_GONE")(verify())
        def alter(query: String) = run(s"ALTER MATERIALIZED VIEW kept_$format AS $query")
        checkError("CHANGELOG_VIEW_NOT_ALTERED")(alter("SELECT id, fare FROM rides"))
        assert(run(s"SELECT * FROM kept_$format") == Seq("1 Bern", "3 Nice"))
        // what is kept needs no copy
        alter("SELECT id, upper(city) AS city FROM rides")
        assert(run(s"SELECT * FROM kept_$format") == Seq("1 BERN", "3 NICE"))
        alter("SELECT id, city FROM rides")
      }
      run(s"REFRESH MATERIALIZED VIEW kept_$format FULL")
      assert(run(s"SELECT * FROM kept_$format") == Seq("1 Bern", "3 Nice"))
    }
  }
}
