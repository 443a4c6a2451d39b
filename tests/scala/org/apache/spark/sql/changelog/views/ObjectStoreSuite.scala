// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.Files
import java.util.UUID

import scala.collection.mutable
import scala.util.Try

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS
import org.apache.spark.sql.streaming.Trigger

import org.apache.spark.sql.changelog.checkpoint.{Fence, TextFile}
import org.apache.spark.sql.changelog.testing._

/** Tables, views and checkpoints on an S3 server, by `dev/object-store`. */
class ObjectStoreSuite extends EffectTest {
  private val Lease = 3000
  private val home = QuickFileSystem.temporaryDirectory().toPath
  private val isThere = Try(Class.forName("org.apache.hadoop.fs.s3a.S3AFileSystem")).isSuccess
  private val query = "SELECT customer, sum(amount) AS total FROM plain GROUP BY customer"
  private val manager = STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key

  private lazy val server = Services.s3()

  private lazy val settings: Map[String, String] = Map(
    "fs.s3a.endpoint" -> server("endpoint"),
    "fs.s3a.endpoint.region" -> "us-east-1",
    "fs.s3a.path.style.access" -> "true",
    "fs.s3a.access.key" -> "tester",
    "fs.s3a.secret.key" -> "tester",
    "fs.s3a.aws.credentials.provider" -> "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider")

  private lazy val root = s"s3a://${server("bucket")}/${UUID.randomUUID}"

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++
      settings.map { case (key, value) => s"spark.hadoop.$key" -> value } ++
      Map(
        "spark.sql.warehouse.dir" -> root,
        "spark.sql.changelog.views.lease" -> Lease.toString,
        "spark.delta.logStore.s3a.impl" -> "io.sparkchangelog.ConditionalLogStore"))

  override def beforeAll(): Unit = {
    super.beforeAll()
    // as in a session without the settings of the tests
    spark.conf.unset(manager)
  }

  private def onStore(name: String)(body: => Any): Unit = if (isThere) test(name)(body)

  private def change(): Unit = {
    run("UPDATE plain SET amount = amount + 3 WHERE customer = 'Ada'")
    run("INSERT INTO plain VALUES ('Eve', 1)")
    run("DELETE FROM plain WHERE customer = 'Ben'")
    ()
  }

  private def refresh(name: String = "v"): Unit = {
    run(s"REFRESH MATERIALIZED VIEW $name")
    ()
  }

  for (format <- Seq("delta", "parquet")) {
    onStore(s"$format: a view of a feed equals the batch result after each refresh") {
      run(s"CREATE MATERIALIZED VIEW v USING $format AS $totals")
      for (changes <- Seq(
          Seq("+I 1 Ada 10", "+I 2 Ben 20", "+I 3 Ada 5"),
          Seq("-U 1 Ada 10", "+U 1 Ben 11", "-D 3 Ada 5"),
          Seq("-D 2 Ben 20", "+I 4 Cid 7"))) {
        deliver(changes: _*)
        refresh()
        check(totals)
      }
      run("REFRESH MATERIALIZED VIEW v FULL")
      check(totals)
    }

    onStore(s"$format: a view of a table is saved, changed, restored and dropped") {
      run(s"CREATE MATERIALIZED VIEW v USING $format AS $query")
      change()
      refresh()
      val before = RowMultiset.of(run("SELECT * FROM v"))
      run("CREATE SAVEPOINT s OF MATERIALIZED VIEW v")
      run("ALTER MATERIALIZED VIEW v SET PARTITIONS 3")
      change()
      refresh()
      check(query)
      assert(run("SELECT * FROM changes('v')").nonEmpty)
      run("RESTORE MATERIALIZED VIEW v TO SAVEPOINT s")
      assert(RowMultiset.of(run("SELECT * FROM v")) == before)
      refresh()
      check(query)
      val folder = new ViewCatalog(spark).get(Seq("v")).definition.home
      run("DROP MATERIALIZED VIEW v")
      assert(!folder.getFileSystem(spark.sessionState.newHadoopConf()).exists(folder))
    }

    onStore(s"$format: a refresh that fails at an effect is done by the next refresh") {
      run(s"CREATE MATERIALIZED VIEW v USING $format AS $query")
      // the first refresh computes the state
      change()
      refresh()
      change()
      val effects = mutable.Set.empty[String]
      Fence.onEffect = (name, isChecked) => if (isChecked) effects += name
      refresh()
      assert(effects.contains("batch"))
      for (effect <- effects) {
        change()
        Fence.onEffect = (name, isChecked) =>
          if (isChecked && name == effect) throw new IllegalStateException("fails here")
        assert(Try(refresh()).isFailure, s"at $effect")
        Fence.onEffect = (_, _) => ()
        refresh()
        check(query)
      }
    }

    onStore(s"$format: a process that is held up while another takes over changes nothing") {
      val plain = s"delta.`$root/plain`"
      run(s"CREATE MATERIALIZED VIEW v USING $format AS ${query.replace("plain", plain)}")
      change()
      refresh()
      change()
      val go = home.resolve(s"go-$format")
      val conf = ChildProcess.session(home) - manager ++ ChangelogSession.DeltaConf ++
        spark.sparkContext.getConf.getAll.toMap.filter { case (key, _) =>
          key.startsWith("spark.hadoop.fs.s3a") || key.startsWith("spark.delta")
        } + ("spark.sql.changelog.views.lease" -> Lease.toString)
      val holders = new ChildProcess(ViewHolder, home)
      val process =
        holders.start(ChildProcess.line(conf), definition(format), "refresh batch", go.toString)
      def signal(name: String): Unit = {
        new ProcessBuilder("kill", s"-$name", process.pid.toString).start().waitFor()
        ()
      }
      try {
        val told = process.inputReader()
        assert(told.readLine() == "held", holders.said)
        signal("STOP")
        refresh()
        check(query)
        change()
        refresh()
        val kept = RowMultiset.of(run("SELECT * FROM v"))
        Files.createFile(go)
        signal("CONT")
        assert(told.readLine() == "CHANGELOG_VIEW_LEASE_LOST", holders.said)
        process.waitFor()
        assert(RowMultiset.of(run("SELECT * FROM v")) == kept)
        change()
        refresh()
        check(query)
      } finally process.destroyForcibly().waitFor()
    }
  }

  /** By which another catalog knows the view. */
  private def definition(format: String): String =
    if (format == "delta") s"CREATE TABLE v USING delta LOCATION '$root/v'"
    else {
      val view = spark.sessionState.catalog.getTableMetadata(TableIdentifier("v"))
      val properties = view.properties.filter(_._1.startsWith("changelog."))
      s"CREATE VIEW v TBLPROPERTIES (${ViewStorage.listed(properties)}) AS ${view.viewText.get}"
    }

  onStore("of several writers of a file, one creates the file") {
    val hadoopConf = spark.sessionState.newHadoopConf()
    for (number <- 0 until 10) {
      val path = new Path(s"$root/files/$number")
      val created = mutable.Set.empty[Int]
      val writers = (0 until 4).map { writer =>
        new Thread(() =>
          if (new TextFile(path, hadoopConf).create(s"$writer")) created.synchronized {
            created += writer
          })
      }
      writers.foreach(_.start())
      writers.foreach(_.join())
      assert(created.size == 1 && new TextFile(path, hadoopConf).read() == s"${created.head}")
    }
  }

  onStore("a view of files is refused if S3A creates files without the condition") {
    val session = spark.newSession()
    session.conf.set("fs.s3a.create.conditional.enabled", "false")
    session.conf.set("fs.s3a.impl.disable.cache", "true")
    checkError("CHANGELOG_VIEW_STORE_NOT_SUPPORTED", "view" -> "`spark_catalog`.`default`.`v`") {
      session.sql(s"CREATE MATERIALIZED VIEW v USING parquet AS $query").collect()
    }
  }

  onStore("a query goes on from its checkpoint, and its changes fold to the batch result") {
    spark.conf.set(manager, "io.sparkchangelog.ChangelogCheckpointFileManager")
    try {
      for (changes <- Seq(
          Seq("+I 1 Ada 10", "+I 2 Ben 20"),
          Seq("-U 1 Ada 10", "+U 1 Ben 11"),
          Seq("-D 2 Ben 20", "+I 4 Cid 7"))) {
        deliver(changes: _*)
        val running = spark
          .sql(s"SELECT * FROM to_changelog(TABLE($totals))")
          .writeStream
          .format("changelog-table")
          .option("path", s"$root/target")
          .option("createTable", "true")
          .option("checkpointLocation", s"$root/checkpoint")
          .outputMode("append")
          .trigger(Trigger.AvailableNow())
          .start()
        running.awaitTermination()
        val target = run(s"SELECT customer, n, total FROM delta.`$root/target`")
        assert(RowMultiset.of(target) == RowMultiset.of(run(totals.replace("STREAM ", ""))))
      }
    } finally spark.conf.unset(manager)
  }
}
