// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.verify

import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Column, Row}

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.errors.ViewErrors
import org.apache.spark.sql.changelog.sinks.ChangelogBatch.{columns, quoted}
import org.apache.spark.sql.changelog.views._

/**
 * Compares the rows of a view with what its query gives in batch Spark, over exactly what its
 * sources had delivered when the view's last batch was committed, at the time of that batch.
 *
 * @param sample
 *   compare only this percentage of the keys, others each time
 */
class VerifyView(creator: SparkSession, view: KeptView, sample: Option[Double]) {
  import VerifyView._

  private val query = new ViewQuery(creator, view.definition)
  private val session = query.session
  // few rows are kept in few partitions
  session.conf.set(SQLConf.CAN_CHANGE_CACHED_PLAN_OUTPUT_PARTITIONING.key, value = true)
  private val atRest = new ViewAtRest(view, query, "compared with its query")
  private val seed = System.nanoTime()

  /** The rows that differ, at most [[MostRows]] of them; whether they are too many or missing. */
  def apply(): Seq[Row] = {
    if (query.isStreaming && query.forgetsRows) throw ViewErrors.notComparable(view.name)
    val at = System.currentTimeMillis()
    val (differences, compared) =
      if (query.isStreaming) compareStream() else compare(atRest.stored, query.rows)
    new ViewLog(creator, view.definition.folder)
      .verified(VerificationRecord(at, sample, compared, differences.size.toLong))
    differences.take(MostRows)
  }

  private def compareStream(): (Seq[Row], Long) = {
    var result: (Seq[Row], Long) = (Nil, 0L)
    atRest { (_, stored, plan) => result = compare(stored, Dataset.ofRows(session, plan)) }
    result
  }

  private def compare(stored: DataFrame, expected: DataFrame): (Seq[Row], Long) = {
    val names = expected.columns.toSeq
    val key = if (query.isStreaming) query.key.filter(_.nonEmpty) else None
    val hashed = key.getOrElse(names).map { name =>
      RowDifference.comparable(quoted(name), expected.schema(name).dataType)
    }
    def some(rows: DataFrame) = sample.fold(rows.select(columns(names): _*)) { percent =>
      val bucket = pmod(xxhash64(lit(seed) +: hashed: _*), lit(Buckets))
      rows.select(columns(names): _*).where(bucket < (percent / 100 * Buckets).toLong)
    }
    val stays = some(stored).persist()
    val should = some(expected).persist()
    try {
      val missing = RowDifference(should, stays)
      val extra = RowDifference(stays, should)
      val found = key match {
        case Some(key) if names.map(expected.schema(_)).exists(isInexact) =>
          unequal(missing, extra, key, names)
        case _ =>
          missing
            .select(named("missing", names): _*)
            .union(extra.select(named("unexpected", names): _*))
      }
      // one row more tells that there are more than are shown
      (found.take(MostRows + 1).toSeq, should.count().max(stays.count()))
    } finally {
      stays.unpersist()
      should.unpersist()
    }
  }

  /** Leaves out pairs of one key that differ in the last digits of inexact numbers only. */
  private def unequal(
      missing: DataFrame,
      extra: DataFrame,
      key: Seq[String],
      names: Seq[String]): DataFrame = {
    val schema = missing.schema
    def columnOf(side: String, name: String) = col(s"$side.`${name.replace("`", "``")}`")
    val sameKey = key.map(name => columnOf("m", name) <=> columnOf("e", name)).reduce(_ && _)
    val close = names
      .filterNot(key.contains)
      .map { name =>
        val (left, right) = (columnOf("m", name), columnOf("e", name))
        if (!isInexact(schema(name))) {
          val dataType = schema(name).dataType
          RowDifference.comparable(left, dataType) <=> RowDifference.comparable(right, dataType)
        } else
          (left <=> right) || abs(left - right) <= greatest(abs(left), abs(right)) * Tolerance
      }
      .foldLeft(sameKey)(_ && _)
    val isClose = coalesce(close, lit(false))
    val lacks = missing.as("m").join(extra.as("e"), isClose, "left_anti")
    val exceeds = extra.as("e").join(missing.as("m"), isClose, "left_anti")
    lacks
      .select(named("missing", names): _*)
      .union(exceeds.select(named("unexpected", names): _*))
  }

  private def isInexact(field: StructField): Boolean =
    field.dataType == DoubleType || field.dataType == FloatType

  private def named(difference: String, names: Seq[String]): Seq[Column] =
    lit(difference).as(Difference) +: names.map(quoted)
}

object VerifyView {

  /** The column that says whether a row is `missing` in the view, or `unexpected`. */
  val Difference = "_difference"

  /** How many rows are shown at most. */
  val MostRows = 1000

  /** How far sums of DOUBLEs may differ by the order of what is added, relatively. */
  private val Tolerance = 1e-9
  private val Buckets = 1000000L

  /** The columns of the result. */
  def schemaOf(view: KeptView): StructType =
    StructType(StructField(Difference, StringType, nullable = false) +: view.schema.fields)
}

/**
 * When a view was last compared with its query, and what came of it.
 *
 * @param rows
 *   how many were compared: those of the view or those of its query, whichever are more
 * @param differences
 *   how many rows differ; one more than are shown, if there are more
 */
case class VerificationRecord(at: Long, sample: Option[Double], rows: Long, differences: Long)

/** What is known of the rows of a generation, kept next to its checkpoint. */
class ViewLog(session: SparkSession, folder: Path) {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private val verification =
    new TextFile(new Path(folder, "verification.json"), session.sessionState.newHadoopConf())

  def verified(record: VerificationRecord): Unit =
    verification.write(Serialization.write(record))

  def lastVerification: Option[VerificationRecord] =
    verification.find().map(Serialization.read[VerificationRecord](_))
}
