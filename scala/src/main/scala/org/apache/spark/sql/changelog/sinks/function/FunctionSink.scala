// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.function

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.{DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch, ChangelogSink, ChangelogSinkProvider, SinkInput, SinkOptions
}
import org.apache.spark.sql.changelog.sources.tables.RowDelta

/**
 * A function of the user that writes batches.
 *
 * @see
 *   [[FunctionSink.register]]
 */
trait BatchFunction {

  /**
   * The accepted changes:
   *
   *   - `append`: inserted rows.
   *   - `upsert`: rows of a key. The column `_changelog_deleted` is true for a deleted row.
   *   - `retract`: rows without a key. The column `_changelog_count` has the number of copies
   *     inserted by the batch, negative for deleted copies.
   */
  def accepts: String

  /**
   * Writes a batch. After a failure the same batch may arrive again.
   *
   * @param key
   *   the columns that identify a row; empty for `append`, for `retract`, and for a query with at most one row
   */
  def write(queryId: String, batchId: Long, key: java.util.List[String], rows: AnyDataFrame): Unit
}

/** Passes the net rows of each batch to a function of the user. */
class FunctionSink(options: SinkOptions) extends ChangelogSink(options.format) {
  import FunctionSink._

  private val registered =
    options.required("function", "the name of a registered function is needed")
  private val function = functions.getOrElse(
    registered,
    throw options.invalid(
      "function",
      s"one of the registered functions (${named(functions.keys)}) is expected"))

  override protected def targetName: String = registered

  override protected def check(input: SinkInput): Unit = {
    keyOf(input)
    ()
  }

  private def keyOf(input: SinkInput): Option[Seq[String]] = function.accepts match {
    case "append" =>
      input.checkInsertOnly()
      None
    case "upsert" => input.key(options.key)
    case _ =>
      input.checkBeforeImages()
      input.checkComparable(None, dataType => RowDelta.isCountable(Seq(dataType)))
      None
  }

  override def write(batch: ChangelogBatch): Unit = {
    val key = keyOf(batch.input)
    def inserted = batch.inserted(None)
    val rows = function.accepts match {
      case "append" => inserted
      case "upsert" =>
        key.fold(inserted.withColumn(Deleted, lit(false))) { key =>
          val newest = batch.newestByKey(key, None)
          newest.select(col(s"${ChangelogBatch.Newest}.*"), col(ChangelogBatch.Gone).as(Deleted))
        }
      case _ => batch.netRows.withColumnRenamed(ChangelogBatch.Net, Count)
    }
    function.write(batch.queryId, batch.batchId, key.getOrElse(Nil).asJava, rows)
  }
}

object FunctionSink {

  /** Whether a row is deleted. */
  val Deleted = "_changelog_deleted"

  /** The number of copies of a row, negative for deleted copies. */
  val Count = "_changelog_count"

  private val functions = new ConcurrentHashMap[String, BatchFunction]().asScala

  /**
   * Registers a function under a name, in this process. The name is the option `function` of the
   * sink. A former function of the name is replaced.
   */
  def register(name: String, function: BatchFunction): Unit = functions.put(name, function)

  private def named(names: Iterable[String]): String =
    if (names.isEmpty) "none" else names.toSeq.sorted.mkString(", ")
}

/** `writeStream.format("changelog-function")`: passes batches to a function of the user. */
class FunctionSinkProvider extends ChangelogSinkProvider("changelog-function") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new FunctionSink(options)
}
