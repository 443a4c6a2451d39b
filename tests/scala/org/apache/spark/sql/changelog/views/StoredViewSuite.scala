// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.FileAlreadyExistsException
import java.util.concurrent.{Callable, Executors}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Try

import io.delta.storage.LogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.internal.SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.testing.{QuickFileSystem, RowMultiset, StoreFileSystem}

/** Views of files on object stores: one writer of several creates a file, and no rename is taken to be atomic. */
class StoredViewSuite extends ViewTest {
  private val folder = QuickFileSystem.temporaryDirectory()
  private val query = "SELECT customer, sum(amount) AS total FROM plain GROUP BY customer"

  override def beforeAll(): Unit = {
    super.beforeAll()
    StoreFileSystem.conf.foreach { case (key, value) =>
      spark.sparkContext.hadoopConfiguration.set(key, value)
    }
    // as in a session without the settings of the tests
    spark.conf.unset(STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key)
    for (scheme <- Seq("store", "unconditional", "ignorant", "lagging"))
      run(s"CREATE DATABASE $scheme LOCATION '$scheme://$folder/$scheme'")
  }

  /** Runs before the first test, so that the suite is left out on a version of Spark without Delta. */
  private lazy val createPlain: Unit = {
    run("CREATE TABLE plain (customer STRING, amount INT) USING delta")
    run("INSERT INTO plain VALUES ('Ada', 1), ('Ben', 2)")
    ()
  }

  override def beforeEach(): Unit = {
    super.beforeEach()
    createPlain
  }

  override def afterEach(): Unit = {
    StoreFileSystem.beforeRename = (_, _) => ()
    super.afterEach()
  }

  private def hadoopConf: Configuration = spark.sessionState.newHadoopConf()

  /** Of writers at the same time, returns those that are told to have created a file. */
  private def winners(create: String => Boolean): Seq[String] = {
    val threads = Executors.newFixedThreadPool(4)
    try {
      val tasks = (0 until 4).map { writer =>
        (() => Some(s"$writer").filter(create)): Callable[Option[String]]
      }
      threads.invokeAll(tasks.asJava).asScala.flatMap(_.get).toSeq
    } finally threads.shutdownNow()
  }

  /** Of writers of each of several files, one creates the file, and the file is from this writer. */
  private def checkCreatedOnce(folder: String)(create: (Path, String) => Boolean): Unit =
    for (number <- 0 until 50) {
      val path = new Path(s"$folder/$number")
      val found = winners(create(path, _))
      assert(found.size == 1, s"in round $number")
      assert(new TextFile(path, hadoopConf).read().trim == found.head)
    }

  for (scheme <- Seq("file", "store"))
    test(s"$scheme: one of several writers creates a file") {
      checkCreatedOnce(s"$scheme://$folder/files-$scheme") { (path, text) =>
        new TextFile(path, hadoopConf).create(text)
      }
    }

  test("store: one of several processes commits a version of a Delta table") {
    val name = "io.sparkchangelog.ConditionalLogStore"
    val log = Try(Class.forName(name)).map { found =>
      val made = found.getConstructor(classOf[Configuration]).newInstance(hadoopConf)
      made.asInstanceOf[LogStore]
    }
    assume(log.isSuccess, "Delta has no release for this line of Spark")
    checkCreatedOnce(s"store://$folder/log") { (path, text) =>
      try {
        log.get.write(path, java.util.List.of(text).iterator(), false, hadoopConf)
        true
      } catch { case _: FileAlreadyExistsException => false }
    }
  }

  test("store: a file that another writer creates after the look for the file stays") {
    val path = new Path(s"store://$folder/late/1")
    StoreFileSystem.beforeRename = (_, to) =>
      if (to == path) {
        StoreFileSystem.beforeRename = (_, _) => ()
        assert(new TextFile(path, hadoopConf).create("first"))
      }
    val isCreated = new TextFile(path, hadoopConf).create("second")
    assert(isCreated == (new TextFile(path, hadoopConf).read() == "second"))
  }

  for ((scheme, reason) <- Seq(
      "unconditional" -> "The file system neither creates a file on a condition nor renames in one step",
      "ignorant" -> "The server ignores the condition, and creates a file twice",
      "lagging" -> "The server does not list a file directly after the creation"))
    test(s"$scheme: a view of files is refused by name") {
      checkError(
        "CHANGELOG_VIEW_STORE_NOT_SUPPORTED",
        "view" -> s"`spark_catalog`.`$scheme`.`v`",
        "provider" -> "parquet",
        "folder" -> s"$scheme:$folder/$scheme/v",
        "reason" -> reason)(run(s"CREATE MATERIALIZED VIEW $scheme.v USING parquet AS $query"))
      assert(run(s"SHOW TABLES IN $scheme").isEmpty)
    }

  test(
    "store: a view is made, refreshed, saved, restored and dropped without a rename of its own files") {
    val renamed = mutable.Set.empty[Path]
    StoreFileSystem.beforeRename = (_, to) => renamed.synchronized(renamed += to)
    def check(): Unit = {
      val expected = RowMultiset.of(run(query))
      for (session <- Seq(spark, spark.newSession()))
        assert(RowMultiset.of(session.sql("SELECT * FROM store.v").collect()) == expected)
      assert(run("VERIFY MATERIALIZED VIEW store.v").isEmpty)
    }
    run(s"CREATE MATERIALIZED VIEW store.v USING parquet AS $query")
    check()
    for (change <- Seq(
        "UPDATE plain SET amount = amount + 3 WHERE customer = 'Ada'",
        "DELETE FROM plain WHERE customer = 'Ben'",
        "INSERT INTO plain VALUES ('Cid', 7), ('Ada', 1)")) {
      run(change)
      run("REFRESH MATERIALIZED VIEW store.v")
      check()
    }
    assert(run("SHOW REFRESHES OF store.v").size == 4)
    val before = RowMultiset.of(run("SELECT * FROM store.v"))
    run("CREATE SAVEPOINT s OF MATERIALIZED VIEW store.v")
    run("REFRESH MATERIALIZED VIEW store.v FULL")
    check()
    run("INSERT INTO plain VALUES ('Dan', 4)")
    run("REFRESH MATERIALIZED VIEW store.v")
    run("RESTORE MATERIALIZED VIEW store.v TO SAVEPOINT s")
    assert(RowMultiset.of(run("SELECT * FROM store.v")) == before)
    run("REFRESH MATERIALIZED VIEW store.v")
    check()
    run("ALTER MATERIALIZED VIEW store.v SET PARTITIONS 3")
    check()
    // files of rows are renamed by Spark's committer, before the file _SUCCESS makes them complete;
    // and no other process knows of a new checkpoint
    val own = renamed.map(_.toString).filterNot { path =>
      Seq("/rows/", "/checkpoint-", "/checkpoint/metadata").exists(path.contains)
    }
    assert(own.isEmpty)
    run("DROP MATERIALIZED VIEW store.v")
    assert(!new java.io.File(folder, "store/v").exists)
  }
}
