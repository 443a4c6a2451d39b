// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import java.io.FileNotFoundException
import java.lang.reflect.InvocationTargetException
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.streaming.{StreamingQueryException, Trigger}

import org.apache.spark.sql.changelog.testing._

/** What `connectors.delta` expects of Delta, one test for each. docs/contributing/delta.md lists them. */
class DeltaAssumptionsSuite extends AnyFunSuite with ChangelogSession with GoldenFiles {
  private lazy val warehouse = QuickFileSystem.temporaryDirectory().getPath

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick ++ WhileOptimized.conf +
      ("spark.sql.warehouse.dir" -> warehouse))

  private val connector =
    new ConnectorPackage(classOf[DeltaRelation], "org.apache.spark.sql.delta.")

  private def run(sql: String): Seq[Row] = spark.sql(sql).collect().toSeq

  private def withTable(properties: String*)(check: => Any): Unit = {
    val listed = properties.map(name => s"'$name' = 'true'").mkString("(", ", ", ")")
    val options = if (properties.isEmpty) "" else s"TBLPROPERTIES $listed"
    run(s"CREATE TABLE t (id INT, v STRING) USING delta $options")
    try check
    finally run("DROP TABLE t")
    ()
  }

  private def relation: DeltaRelation = DeltaRelation.find(spark, "t").get

  private def entry: DeltaLogEntry = {
    val snapshot = relation.snapshot
    snapshot.log(snapshot.version, snapshot.version).head
  }

  /** The condition of the first cause that has one. */
  private def conditionOf(body: => Any): String = {
    val error = intercept[Throwable](body)
    val causes = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq
    causes
      .collect { case named: SparkThrowable => named.getCondition }
      .filter(_ != null)
      .filterNot(_ == "STREAM_FAILED")
      .headOption
      .getOrElse(throw error)
  }

  private def runStream(checkpoint: String): Unit = {
    val query = spark.readStream
      .table("t")
      .writeStream
      .format("noop")
      .option("checkpointLocation", checkpoint)
      .trigger(Trigger.AvailableNow())
      .start()
    try query.awaitTermination()
    finally query.stop()
  }

  private def newCheckpoint(): String = QuickFileSystem.temporaryDirectory().getPath

  test("the class of the file index tells a Delta table, and whether a version is named") {
    withTable() {
      assert(!relation.isTimeTravel)
      val old = spark.sql("SELECT * FROM t VERSION AS OF 0").queryExecution.analyzed
      assert(old.collectFirst { case DeltaRelation(found) => found.isTimeTravel }.contains(true))
      run("CREATE TABLE files (id INT) USING parquet")
      try assert(DeltaRelation.find(spark, "files").isEmpty)
      finally run("DROP TABLE files")
    }
  }

  test("a snapshot tells version, identity, size, columns and properties") {
    withTable(Delta.ChangeFeed) {
      run("INSERT INTO t VALUES (1, 'a')")
      val snapshot = relation.snapshot
      assert(snapshot.version == 1 && snapshot.hasChangeFeed && snapshot.bytes.exists(_ > 0))
      assert(
        snapshot.columns == DeltaColumns(spark.table("t").schema, Nil)(_ => snapshot.columns))
      val id = run("DESCRIBE DETAIL t").head.getAs[String]("id")
      assert(snapshot.id == id)
    }
  }

  test("names of columns in files are told where they differ") {
    withTable() {
      run("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
      run("ALTER TABLE t RENAME COLUMN v TO w")
      assert(relation.snapshot.columns.inFiles == Seq("w is v"))
      assert(entry.columns == Seq(relation.snapshot.columns))
    }
  }

  test("the log tells the files of a commit, and the rows that it has rewritten") {
    withTable() {
      run("INSERT INTO t SELECT id, 'a' FROM range(0, 10, 1, 1)")
      assert(entry.files.files.map(_.rows) == Seq(Some(10L)))
      run("UPDATE t SET v = 'b' WHERE id < 3")
      val changed = entry.files
      assert(changed.files.map(_.isGone).toSet == Set(true, false))
      assert(changed.copied == 7 && changed.replaced == 3)
      run("MERGE INTO t USING (VALUES (1) AS c(id)) c ON t.id = c.id WHEN MATCHED THEN DELETE")
      assert(entry.files.copied == 9 && entry.files.replaced == 1)
    }
  }

  test("a log is read by as many tasks as a setting says") {
    val session = spark.newSession()
    session.conf.unset(Delta.LogTasks)
    withTable() {
      (1 to 2).foreach(n => run(s"INSERT INTO t VALUES ($n, 'a')"))
      DeltaLog.clearCache()
      Delta.limitLogTasks(session)
      assert(session.conf.get(Delta.LogTasks).toInt == spark.sparkContext.defaultParallelism)
      // Delta asks the active session
      session.withActive {
        val log = DeltaLog.forTable(session, TableIdentifier("t"))
        assert(log.unsafeVolatileSnapshot.stateDS.rdd.getNumPartitions == 2)
      }
      session.conf.set(Delta.LogTasks, 7)
      Delta.limitLogTasks(session)
      assert(session.conf.get(Delta.LogTasks) == "7")
    }
  }

  test("a batch is written once, and the log tells it") {
    withTable() {
      for (batch <- Seq(3L, 3L, 4L)) {
        Delta.having(spark, Delta.ofBatch("query/t", batch)) {
          run(
            "MERGE INTO t USING (VALUES (1, 'a') AS c(id, v)) c ON false WHEN NOT MATCHED THEN INSERT *")
        }
      }
      assert(spark.table("t").count() == 2)
      assert(entry.batches == Map("query/t" -> 4L))
      assert(DeltaCommits.lastBatch(spark, "t", "query").contains(4L))
      assert(
        DeltaCommits.newestFirst(spark, "t").map(_.batchOf("query")) ==
          Seq(Some(4), Some(3), None))
    }
  }

  test("a commit takes a note from a setting") {
    withTable() {
      spark.conf.set(Delta.CommitNote, "generation")
      try run("INSERT INTO t VALUES (1, 'a')")
      finally spark.conf.unset(Delta.CommitNote)
      assert(entry.note.contains("generation"))
    }
  }

  test("changes are read by the feed, or by files where the feed was off") {
    withTable() {
      run("INSERT INTO t SELECT id, 'a' FROM range(1, 3, 1, 1)")
      run("DELETE FROM t WHERE id = 1")
      def read(byFiles: Boolean) = {
        val snapshot = relation.snapshot
        val changes = snapshot.changes(spark, snapshot.log(2, snapshot.version), byFiles)
        assert(Delta.ColumnsOfFeed.forall(changes.columns.contains))
        changes.select("id", Delta.ColumnsOfFeed.head).collect().map(_.mkString(" ")).toSet
      }
      assert(conditionOf(read(byFiles = false)) == Delta.NoFeed)
      // both rows of a file that was replaced, and the row of the file that replaces it
      assert(read(byFiles = true) == Set("1 delete", "2 delete", "2 insert"))
      run(s"ALTER TABLE t SET TBLPROPERTIES ('${Delta.ChangeFeed}' = 'true')")
      run("DELETE FROM t WHERE id = 2")
      val snapshot = relation.snapshot
      val last = snapshot.changes(spark, snapshot.log(4, 4), byFiles = false)
      assert(last.select("id", Delta.ColumnsOfFeed.head).collect().toSeq == Seq(Row(2, "delete")))
    }
  }

  test("the feed refuses versions with other columns") {
    withTable(Delta.ChangeFeed) {
      run("INSERT INTO t VALUES (1, 'a')")
      run("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
      run("ALTER TABLE t DROP COLUMN v")
      run("INSERT INTO t VALUES (2)")
      val condition = conditionOf(run("SELECT * FROM table_changes('t', 1)"))
      assert(Delta.hadOtherColumns(condition), condition)
    }
  }

  test(
    "a version that is not there has an error of its own, and an old one is read if a setting says so") {
    withTable() {
      def read(version: Int) = run(s"SELECT * FROM t VERSION AS OF $version")
      assert(Delta.VersionGone(conditionOf(read(9))))
      run("INSERT INTO t VALUES (1, 'a')")
      run(
        "ALTER TABLE t SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 hours')")
      Thread.sleep(10)
      assert(Delta.VersionGone(conditionOf(read(0))))
      spark.conf.set(Delta.RefusesOldVersions, value = false)
      try assert(read(0).isEmpty)
      finally spark.conf.unset(Delta.RefusesOldVersions)
    }
  }

  test("an offset of a stream names the table and the version") {
    val checkpoint = newCheckpoint()
    withTable() {
      run("INSERT INTO t VALUES (1, 'a')")
      runStream(checkpoint)
      val offset = Files.readAllLines(Paths.get(checkpoint, "offsets", "0")).asScala.last
      assert(DeltaStreamOffset.find(offset).contains(DeltaStreamOffset(relation.snapshot.id, 1)))
    }
  }

  test("a stream of a table that is another one fails by name") {
    val checkpoint = newCheckpoint()
    withTable() {
      run("INSERT INTO t VALUES (1, 'a')")
      runStream(checkpoint)
    }
    withTable() {
      run("INSERT INTO t VALUES (1, 'a')")
      assert(conditionOf(runStream(checkpoint)) == Delta.OtherTable)
    }
  }

  test("a stream of appended rows refuses others by name") {
    val checkpoint = newCheckpoint()
    withTable() {
      run("INSERT INTO t VALUES (1, 'a'), (2, 'a')")
      runStream(checkpoint)
      run("UPDATE t SET v = 'b' WHERE id = 1")
      val updated = conditionOf(runStream(checkpoint))
      val other = newCheckpoint()
      runStream(other)
      run("DELETE FROM t")
      assert(Set(updated, conditionOf(runStream(other))) == Delta.OnlyAppends)
    }
  }

  test("a stream whose log has lost entries fails by name") {
    val checkpoint = newCheckpoint()
    withTable() {
      run("INSERT INTO t VALUES (1, 'a')")
      runStream(checkpoint)
      (1 to 12).foreach(n => run(s"INSERT INTO t VALUES ($n, 'b')"))
      Seq(".json", ".crc").foreach { end =>
        (0 to 5).foreach(version => Files.deleteIfExists(logFile(f"$version%020d$end")))
      }
      val error = intercept[StreamingQueryException](runStream(checkpoint)).getCause
      assert(error.isInstanceOf[FileNotFoundException] || Delta.LogGone(conditionOf(throw error)))
    }
  }

  private def logFile(name: String): Path = Paths.get(warehouse, "t", Delta.LogFolder, name)

  test("a commit that meets maintenance fails by a name that says so") {
    val statements = Seq("ALTER TABLE t SET TBLPROPERTIES ('note' = 'x')", "OPTIMIZE t")
    statements.foreach { statement =>
      withTable() {
        (1 to 2).foreach(n => run(s"INSERT INTO t VALUES ($n, 'a')"))
        WhileOptimized.onceChanged("t")(spark.newSession().sql(statement).collect())
        withClue(statement) {
          val error = intercept[Exception](run("UPDATE t SET v = 'b' WHERE id = 1"))
          assert(WhileOptimized.isDone && Delta.isMaintenanceConflict(error), error)
        }
      }
    }
  }

  test("a jar whose class loader does not find Delta says how to load both") {
    withTable() {
      val found = relation
      val apart = connector.loadWithoutLibrary(classOf[DeltaRelation])
      val again = apart.getConstructors.head.newInstance(found.relation, found.location)
      val condition = conditionOf {
        try apart.getMethod("snapshot").invoke(again)
        catch { case failed: InvocationTargetException => throw failed.getCause }
      }
      assert(condition == "CHANGELOG_DELTA_NOT_LINKED")
    }
  }

  test(
    "no other package knows settings and errors of Delta, and no other class is linked with it") {
    val known = "sql\\.delta\\b|spark\\.databricks|\"(DIFFERENT_)?DELTA_|\"delta\\.enable".r
    val outside = connector.sourcesOutside(known)
    assert(outside.isEmpty, outside)
    val linked = connector.linked
    assert(linked.isEmpty == ChangelogSession.isSpark43 && linked.forall(isPlainCode), linked)
  }

  private def isPlainCode(file: Path): Boolean =
    connector.has(file, "Delta(Snapshots|Writes)\\b.*")
}
