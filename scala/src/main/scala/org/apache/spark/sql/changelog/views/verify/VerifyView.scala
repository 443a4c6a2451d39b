// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.verify

import org.apache.hadoop.fs.Path
import org.json4s._
import org.json4s.jackson.Serialization

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.checkpoint.TextFile
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis
import org.apache.spark.sql.changelog.sinks.ChangelogBatch.{columns, quoted}
import org.apache.spark.sql.changelog.sinks.table.RowMerge
import org.apache.spark.sql.changelog.sources.tables.RowDelta
import org.apache.spark.sql.changelog.views._

/**
 * VerifyView: compares the rows of a view with the result of the view's query in batch Spark. The batch query reads
 * exactly the data delivered up to the view's last batch, and uses the time of this batch.
 *
 * @param sample
 *   the percentage of keys to compare, a new sample in each run
 */
class VerifyView(creator: SparkSession, view: MaterializedView, sample: Option[Double]) {
  import VerifyView._

  private val query = new ViewQuery(creator, view.definition)
  private val session = query.session
  // Few cached rows then need few partitions.
  session.conf.set(SQLConf.CAN_CHANGE_CACHED_PLAN_OUTPUT_PARTITIONING.key, value = true)
  private val pinned = new PinnedView(view, query, "compared with its query")
  private val seed = System.nanoTime()

  /** Returns the differing rows, at most [[MostRows]], each marked as missing or unexpected. */
  def apply(): Seq[Row] = {
    if (query.isStreaming && query.expiresRows)
      throw analysis("CHANGELOG_VIEW_NOT_COMPARABLE", "view" -> view.name)
    if (query.keepsCommits) throw query.notRecomputable(view.name, "VERIFY")
    val at = System.currentTimeMillis()
    val (differences, compared) =
      if (query.isStreaming) compareStream() else compare(pinned.stored, query.rows)
    new ViewLog(creator, view.definition.folder)
      .verified(VerificationRecord(at, sample, compared, differences.size.toLong))
    differences.take(MostRows)
  }

  private def compareStream(): (Seq[Row], Long) = {
    var result: (Seq[Row], Long) = (Nil, 0L)
    pinned { (_, stored, plan) => result = compare(stored, Dataset.ofRows(session, plan)) }
    result
  }

  private def compare(stored: DataFrame, expected: DataFrame): (Seq[Row], Long) = {
    val names = expected.columns.toSeq
    val key = if (query.isStreaming) query.key.filter(_.nonEmpty) else None
    val hashed = key.getOrElse(names).map { name =>
      RowDelta.comparable(quoted(name), expected.schema(name).dataType)
    }
    def some(rows: DataFrame) = sample.fold(rows.select(columns(names): _*)) { percent =>
      val bucket = pmod(xxhash64(lit(seed) +: hashed: _*), lit(Buckets))
      rows.select(columns(names): _*).where(bucket < (percent / 100 * Buckets).toLong)
    }
    val stays = some(stored).persist()
    val should = some(expected).persist()
    try {
      val counted = RowDelta.counted(should, stays)
      val differences = RowDelta
        .copies(counted, names, Difference, Missing, "unexpected")
        .select(col(Difference) +: columns(names): _*)
      val found = key match {
        case Some(key) if names.map(expected.schema(_)).exists(isInexact) =>
          unequal(differences, key, names)
        case _ => differences
      }
      // An additional row signals more differences than shown.
      (found.take(MostRows + 1).toSeq, should.count().max(stays.count()))
    } finally {
      stays.unpersist()
      should.unpersist()
    }
  }

  /** Removes pairs of rows with equal keys and mere rounding errors in floating-point numbers. */
  private def unequal(differences: DataFrame, key: Seq[String], names: Seq[String]): DataFrame = {
    val (schema, isMissing) = (differences.schema, col(Difference) === Missing)
    val (missing, extra) = (differences.where(isMissing), differences.where(!isMissing))
    def columnOf(side: String, name: String) = col(RowMerge.column(side, name))
    val sameKey = key.map(name => columnOf("m", name) <=> columnOf("e", name)).reduce(_ && _)
    val close = names
      .filterNot(key.contains)
      .map { name =>
        val (left, right) = (columnOf("m", name), columnOf("e", name))
        if (!isInexact(schema(name))) {
          val dataType = schema(name).dataType
          RowDelta.comparable(left, dataType) <=> RowDelta.comparable(right, dataType)
        } else
          (left <=> right) || abs(left - right) <= greatest(abs(left), abs(right)) * Tolerance
      }
      .foldLeft(sameKey)(_ && _)
    val isClose = coalesce(close, lit(false))
    val lacks = missing.as("m").join(extra.as("e"), isClose, "left_anti")
    lacks.union(extra.as("e").join(missing.as("m"), isClose, "left_anti"))
  }

  private def isInexact(field: StructField): Boolean =
    field.dataType == DoubleType || field.dataType == FloatType
}

object VerifyView {

  /** The column that marks a row as `missing` in the view or as `unexpected`. */
  val Difference = "_difference"
  private val Missing = "missing"

  /** The maximum number of rows shown. */
  val MostRows = 1000

  /** The relative difference permitted between sums of DOUBLEs, which depend on the order of addition. */
  private val Tolerance = 1e-9
  private val Buckets = 1000000L

  /** Returns the columns of the result. */
  def schemaOf(view: MaterializedView): StructType =
    StructType(StructField(Difference, StringType, nullable = false) +: view.schema.fields)
}

/**
 * VerificationRecord: the last comparison of a view with its query.
 *
 * @param rows
 *   the number of rows compared: the larger count of view and query
 * @param differences
 *   the number of differing rows, at most [[VerifyView.MostRows]] + 1
 */
case class VerificationRecord(at: Long, sample: Option[Double], rows: Long, differences: Long)

/** ViewLog: facts about the rows of a generation, stored beside the generation's checkpoint. */
class ViewLog(session: SparkSession, folder: Path) {
  private implicit val formats: Formats = Serialization.formats(NoTypeHints)
  private val verification =
    new TextFile(new Path(folder, "verification.json"), session.sessionState.newHadoopConf())

  def verified(record: VerificationRecord): Unit =
    verification.write(Serialization.write(record))

  def lastVerification: Option[VerificationRecord] =
    verification.find().map(Serialization.read[VerificationRecord](_))
}
