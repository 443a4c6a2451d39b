// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.{Column, DataFrame}

/** Something that keeps the result of a program's query. */
trait KeptTarget {

  /** The query that keeps it, if it runs all the time. */
  def running: Option[StreamingQuery]

  /** Takes up all that has arrived. */
  def catchUp(): Unit

  /** Goes on from the checkpoint. */
  def restart(): Unit

  /** Does the last batch once more, as after a failure. */
  def repeat(): Unit

  /** The rows that are kept, in each of its tables; none as long as nothing was ever written. */
  def tables: Seq[DataFrame]

  def stop(): Unit
}

/**
 * What a sink keeps. Each start makes the query anew from its text.
 *
 * @param kept
 *   the program whose query it keeps
 * @param arguments
 *   further arguments of `to_changelog`
 * @param format
 *   the sink's name
 * @param keepsSession
 *   whether what is kept lives no longer than the session
 * @param read
 *   reads the tables that are kept, in the query's session; fails as long as nothing was ever written
 */
class SinkTarget(
    kept: KeptProgram,
    arguments: String,
    format: String,
    options: Map[String, String],
    keepsSession: Boolean,
    read: SparkSession => Seq[DataFrame])
    extends KeptTarget {
  private val checkpoint = QuickFileSystem.temporaryDirectory()
  private var query: Option[StreamingQuery] = None
  private var session: SparkSession = _

  override def running: Option[StreamingQuery] = query

  override def catchUp(): Unit = {
    if (query.isEmpty) restart()
    query.get.processAllAvailable()
  }

  override def restart(): Unit = {
    stop()
    if (session != null && keepsSession) kept.nameTables(session)
    else session = kept.session()
    query = Some(
      kept
        .changes(session, arguments)
        .writeStream
        .format(format)
        .options(options)
        .option("checkpointLocation", checkpoint.getPath)
        .start())
  }

  override def repeat(): Unit = {
    stop()
    KeptProgram.forgetLastBatch(checkpoint)
    restart()
    catchUp()
  }

  override def tables: Seq[DataFrame] =
    if (new File(checkpoint, "commits/0").exists()) read(session) else Nil

  override def stop(): Unit = {
    query.foreach(_.stop())
    query = None
  }
}

/**
 * A materialized view. Each statement is of a session that has seen none before.
 *
 * @param provider
 *   how its rows are stored
 * @param checkpoint
 *   where its query's progress is noted
 */
class ViewTarget(kept: KeptProgram, name: String, provider: String, checkpoint: String => File)
    extends KeptTarget {
  private var isMade = false

  override def running: Option[StreamingQuery] = None

  override def catchUp(): Unit =
    if (isMade) run(s"REFRESH MATERIALIZED VIEW $name")
    else {
      val follow =
        if (kept.tellsChanges) "" else "TBLPROPERTIES ('changelog.follow' = 'copies')"
      run(s"CREATE MATERIALIZED VIEW $name USING $provider $follow AS ${kept.sql}")
      isMade = true
    }

  /** Each refresh does. */
  override def restart(): Unit = ()

  override def repeat(): Unit = {
    KeptProgram.forgetLastBatch(checkpoint(name))
    catchUp()
  }

  override def tables: Seq[DataFrame] = Seq(kept.session().table(name))

  override def stop(): Unit = run(s"DROP MATERIALIZED VIEW IF EXISTS $name")

  private def run(statement: String): Unit = {
    kept.session().sql(statement).collect()
    ()
  }
}

object KeptTarget {

  /** Fails if what is kept is not what is expected. */
  def compare(target: KeptTarget, expected: DataFrame, what: => String): Unit = {
    val rows = RowMultiset.of(expected.collect())
    val tables = target.tables
    if (tables.isEmpty && rows.contents.nonEmpty)
      throw new AssertionError(s"$what: nothing is kept")
    tables.foreach { table =>
      val columns = expected.schema.map { field =>
        val column: Column = table.col(s"`${field.name}`")
        column.cast(field.dataType.asNullable).as(field.name)
      }
      val kept = RowMultiset.of(table.select(columns: _*).collect())
      if (kept != rows) throw new AssertionError(s"$what: kept\n$kept\nexpected\n$rows")
    }
  }
}
