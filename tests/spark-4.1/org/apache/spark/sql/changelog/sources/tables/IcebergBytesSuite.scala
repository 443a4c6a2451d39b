// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import org.apache.iceberg.spark.ScanTaskSetManager
import org.scalatest.concurrent.Eventually.{eventually, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.sql.classic.Dataset

import org.apache.spark.sql.changelog.views.IcebergSession

/** What is read of an Iceberg table to find the changes between two snapshots. */
class IcebergBytesSuite extends AnyFunSuite with IcebergSession {
  private val name = "`ice`.`db`.`days`"

  /** Runs a statement, and returns the bytes to read for the changes, as a share of the table, and the changes. */
  private def changed(statement: String): (Double, Long) = {
    val table = new SnapshotTable(spark, name)
    val before = table.now()
    run(statement)
    val size = table.size(before).get
    var bytes = 0L
    val listener = new SparkListener {
      override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
        bytes += Option(end.taskMetrics).fold(0L)(_.inputMetrics.bytesRead)
      }
    }
    spark.sparkContext.addSparkListener(listener)
    val rows = Dataset.ofRows(spark, table.changes(before, table.now())).count()
    spark.sparkContext.listenerBus.waitUntilEmpty()
    spark.sparkContext.removeSparkListener(listener)
    info(
      s"$statement: $rows changes; ${size.changed} of ${size.inAll} bytes in files, $bytes bytes read by tasks")
    (size.changed.toDouble / size.inAll, rows)
  }

  test("a version is found that another session has seen") {
    run(s"CREATE TABLE $name (id INT) USING iceberg")
    try {
      run(s"INSERT INTO $name VALUES (1)")
      val late = spark.newSession()
      assert(late.table(name).count() == 1)
      val first = new SnapshotTable(spark, name).now()
      run(s"INSERT INTO $name VALUES (2)")
      val second = new SnapshotTable(spark, name).now()
      assert(late.table(name).count() == 1, "the catalog of the session remembers nothing")
      val table = new SnapshotTable(late, name)
      assert(Dataset.ofRows(late, table.changes(first, second)).count() == 1)
      assert(Dataset.ofRows(late, table.rows(second)).count() == 2)
    } finally run(s"DROP TABLE $name")
  }

  ways.foreach { case (way, format) =>
    test(s"changed rows of one partition are found in its files, with $way") {
      run(
        s"CREATE TABLE $name (day INT, id INT, amount DOUBLE) USING iceberg PARTITIONED BY (day) $format")
      try {
        run(s"INSERT INTO $name SELECT int(id % 365), int(id), id / 7.0 FROM range(36500)")
        val (share, rows) = changed(s"UPDATE $name SET amount = 0 WHERE day = 100 AND id < 13000")
        assert(rows == 72 && share < 0.02)
        assert(changed(s"DELETE FROM $name WHERE id % 1000 = 3")._2 == 37)
        val compact =
          "CALL ice.system.rewrite_data_files(table => 'db.days', options => map('rewrite-all', 'true'))"
        assert(changed(compact) == (0.0, 0L))
        eventually(timeout(Span(30, Seconds))) {
          System.gc()
          assert(ScanTaskSetManager.get.fetchSetIds(api("days")).isEmpty)
        }
      } finally run(s"DROP TABLE $name")
    }
  }
}
