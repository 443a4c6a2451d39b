// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import java.sql.{Connection, SQLException}

import scala.collection.BufferedIterator
import scala.util.{Try, Using}

import org.apache.spark.TaskContext
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{Encoder, Encoders, Row}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.compat.JdbcTable
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch, ChangelogSink, ChangelogSinkProvider, SinkInput, SinkOptions
}

/**
 * Keeps a database table equal to the query's result.
 *
 * {{{
 *   batch ─▶ one change per key ─▶ distribution by key over numPartitions ─▶ one transaction each:
 *            ledger: claims the batch, or skips a batch already written
 *            deletes, then inserts and updates
 * }}}
 *
 * With one partition, the default, a batch becomes visible atomically. A row with a NULL in the
 * key is deleted and inserted, because a database index does not find NULL.
 */
class JdbcSink(options: SinkOptions) extends ChangelogSink(options.format) {
  import JdbcSink._

  options.refuseMistyped(ownOptions ++ Seq("dbtable", "driver", "password"))
  private val url = options.required("url", "the JDBC address of the database is needed")
  private val table = options.required("dbtable", "the name of the table is needed")
  private val partitions = options.count("numPartitions", 1)
  private val createsTable = options.boolean("createTable", default = false)
  private val database = DatabaseSyntax(url)

  private val jdbc = {
    val named = options.get("driver")
    // Drivers of spark.jars are found only by class name.
    val driver = named.orElse(DatabaseSyntax.driverOf(url).filter(Utils.classIsLoadable))
    val parameters = Map("isolationLevel" -> "READ_COMMITTED") ++ options.without(ownOptions: _*)
    try new JdbcTable(parameters ++ driver.map("driver" -> _))
    catch {
      // The class in the option, or any driver for the address.
      case _: ClassNotFoundException | _: SQLException =>
        val usual = DatabaseSyntax.driverOf(url)
        throw analysis(
          "CHANGELOG_SINK_DRIVER_NOT_FOUND",
          "sink" -> format,
          "kind" -> DatabaseSyntax.kindOf(url),
          "driver" -> named.orElse(usual).fold("")(name => s" of the class $name"))
    }
  }
  private val ledger =
    new Ledger(options.get("ledgerTable").getOrElse(Ledger.DefaultName), table, database)
  @volatile private var target: Option[TargetTable] = None

  private def withConnection[T](body: Connection => T): T =
    Using.resource(database.connect(jdbc))(body)

  override protected def check(input: SinkInput): Unit = {
    input.key(options.key)
    withConnection(checkTable)
    ()
  }

  /** Whether the table exists. If not, the sink creates it later. */
  private def checkTable(connection: Connection): Boolean = {
    val exists = jdbc.exists(connection)
    if (!exists && !createsTable)
      throw analysis("CHANGELOG_SINK_TABLE_NOT_FOUND", "sink" -> format, "table" -> table)
    exists
  }

  override protected def targetName: String = table

  override protected def lastBatchOf(session: SparkSession, queryId: String): Option[Long] =
    withConnection(ledger.lastBatchOf(_, queryId))

  override def write(batch: ChangelogBatch): Unit = {
    val opened = target.getOrElse {
      val opened = open(batch)
      target = Some(opened)
      opened
    }
    val count = withConnection { connection =>
      ledger.partitionsOf(connection, batch.queryId, batch.batchId).getOrElse(partitions)
    }
    val (queryId, batchId) = (batch.queryId, batch.batchId)
    val (ledgerOfAll, ofSpark) = (ledger, jdbc)
    val rows = opened.actions(batch, count)
    rows.as(JdbcSink.exactTimes(rows)).foreachPartition { (rows: Iterator[Row]) =>
      val place = Ledger.Place(queryId, TaskContext.getPartitionId(), count)
      new JdbcTransaction(ofSpark, opened, ledgerOfAll).write(rows.buffered, place, batchId)
    }
  }

  private def open(batch: ChangelogBatch): TargetTable =
    withConnection { connection =>
      val key = batch.input.key(options.key)
      if (!checkTable(connection)) {
        database.createTable(connection, jdbc, batch.schema, key.getOrElse(Nil))
      }
      ledger.create(connection)
      TargetTable(connection, jdbc, database, batch.schema, key, options.get("nullCharacter"))
    }
}

object JdbcSink {

  /**
   * Reads dates and times as classes of `java.time`, because classes of `java.sql` depend on the JVM's time zone.
   */
  private def exactTimes(rows: DataFrame): Encoder[Row] = {
    val conf = rows.sparkSession.sessionState.conf.clone()
    conf.setConf(SQLConf.DATETIME_JAVA8API_ENABLED, true)
    SQLConf.withExistingConf(conf)(Encoders.row(rows.schema))
  }

  /** Options of the sink, withheld from the driver. */
  private val ownOptions =
    Seq("key", "createTable", "ledgerTable", "nullCharacter", "numPartitions")
}

/** `writeStream.format("changelog-jdbc")`: keeps a table of a database current. */
class JdbcSinkProvider extends ChangelogSinkProvider("changelog-jdbc") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new JdbcSink(options)
}

/** Writes a partition of a batch in a transaction, unless already written. */
private class JdbcTransaction(ofSpark: JdbcTable, table: TargetTable, ledger: Ledger) {

  /**
   * @param rows
   *   step, positions of NULLs in the key, row; equal steps are neighbors
   */
  def write(rows: BufferedIterator[Row], place: Ledger.Place, batchId: Long): Unit = {
    val connection = table.database.connect(ofSpark, place.partition)
    try {
      table.database.sessionStatement.foreach { sql =>
        Using.resource(connection.createStatement())(_.execute(sql))
      }
      connection.setAutoCommit(false)
      connection.setTransactionIsolation(ofSpark.isolationLevel)
      if (ledger.claim(connection, place, batchId)) {
        while (rows.hasNext) runStep(rows, connection)
        connection.commit()
      } else connection.rollback()
    } catch {
      case error: Throwable =>
        Try(connection.rollback())
        throw error
    } finally {
      Try(connection.close())
      ()
    }
  }

  /** Runs the statement of the first row for all following rows with an equal statement. */
  private def runStep(rows: BufferedIterator[Row], connection: Connection): Unit = {
    val (step, nulls) = (rows.head.getString(0), rows.head.getString(1))
    val values = table.values(ofSpark, connection, step, nulls)
    val same = new Iterator[Seq[AnyRef]] {
      override def hasNext: Boolean =
        rows.hasNext && rows.head.getString(0) == step && rows.head.getString(1) == nulls
      override def next(): Seq[AnyRef] = values(rows.next().getStruct(2))
    }
    ofSpark.write(
      connection,
      table.statement(step, nulls),
      same,
      table.nullTypes(ofSpark, step, nulls))
  }
}
