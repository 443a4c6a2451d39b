// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.sqltests

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.MemoryStream
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.{DataFrame, Encoders, Row}
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.plans.FromChangelog
import org.apache.spark.sql.changelog.testing._

/** The tables of a file as changelogs, and queries over them, one at a time. */
private[sqltests] class KeptTables(sessions: SqlTestSessions) {
  import KeptTables._

  private val streams = mutable.Map.empty[String, MemoryStream[Row]]
  private val session = sessions.session(create)

  private def create(session: SparkSession, table: SqlTestTable): Unit = {
    val schema = table.schema.add(ChangeType, StringType)
    val stream = MemoryStream[Row](1)(Encoders.row(schema), session.sqlContext)
    streams(table.name) = stream
    val raw = s"${table.name}_changes_"
    TypedColumns(stream.toDF(), schema).createOrReplaceTempView(raw)
    session
      .sql(s"SELECT * FROM from_changelog(TABLE(`$raw`), change_type => '$ChangeType')")
      .createOrReplaceTempView(table.name)
  }

  /** Whether a query reads any of the tables. */
  def readsTables(sql: String): Boolean =
    Try(session.sql(sql).queryExecution.analyzed).toOption.forall(plan =>
      plan.collectWithSubqueries { case changelog: FromChangelog => changelog }.nonEmpty)

  /** What a query has given after each batch; nothing as long as nothing has come that it reads. */
  def run(sql: String, arrival: Arrival): Seq[Option[RowMultiset]] = {
    streams.values.foreach(_.reset())
    val checkpoint = QuickFileSystem.temporaryDirectory()
    var hasBegun = false
    val emitted = mutable.ArrayBuffer.empty[Change]
    val table = new EmittedTable(Variant())
    add(arrival.batches.head)
    val query = session
      .sql(s"SELECT * FROM to_changelog(TABLE($sql\n))")
      .writeStream
      .option("checkpointLocation", checkpoint.getPath)
      .foreachBatch { (batch: DataFrame, _: Long) =>
        hasBegun = true
        batch.collect().foreach { row =>
          emitted += Change(KindOf(row.getString(row.size - 1)), Row.fromSeq(row.toSeq.init))
        }
      }
      .start()
    try {
      arrival.batches.indices.map { number =>
        if (number > 0) RunningChanges.atOnce(query)(add(arrival.batches(number)))
        query.processAllAvailable()
        table.add(emitted.toSeq)
        emitted.clear()
        val rows = new RowMultiset
        table.rows.contents.foreach { case (row, count) => rows.add(Row.fromSeq(row), count) }
        if (hasBegun) Some(rows) else None
      }
    } finally {
      query.stop()
      Utils.deleteRecursively(checkpoint)
    }
  }

  private def add(changes: Map[String, Seq[Change]]): Unit = changes.foreach {
    case (table, rows) =>
      if (rows.nonEmpty) {
        streams(table).addData(rows.map(change => Row.fromSeq(change.row.toSeq :+ change.kind)))
      }
  }

  def close(): Unit = streams.values.foreach(_.reset())
}

private object KeptTables {
  private val ChangeType = "_op_"
  private val KindOf = RowKind.ChangeTypes.zip(RowKind.Symbols).toMap
}
