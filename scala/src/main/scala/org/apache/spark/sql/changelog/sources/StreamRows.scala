// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.Invoke
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.streaming.runtime.{
  StreamingExecutionRelation, StreamingRelation
}
import org.apache.spark.sql.execution.streaming.{Offset, Source}
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSourceProvider}
import org.apache.spark.sql.types.{ByteType, StructType}

import org.apache.spark.sql.changelog.compat.OneBatch
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.sources.tables.{FollowedTables, TableRows}

/**
 * StreamRows: the current rows of a query's streams, for any source. A temporary query reads the
 * rows in one batch.
 */
private[changelog] object StreamRows {

  /** Returns the streams of a plan, one for each reading. */
  def in(plan: LogicalPlan): Seq[LogicalPlan] = plan.collect {
    case stream if isStream(stream) => stream
  }

  def isStream(plan: LogicalPlan): Boolean = plan match {
    case _: StreamingRelation | _: StreamingRelationV2 | _: StreamingExecutionRelation => true
    case _ => false
  }

  /**
   * Passes the rows of each stream to `read`, as plans that are valid only during the call.
   * `read` is not called if all streams are empty.
   *
   * @param checkpoint
   *   the checkpoint of the temporary query, which may contain the last offset to read
   */
  def read(session: SparkSession, streams: Seq[LogicalPlan], checkpoint: Path)(
      read: Seq[(LogicalPlan, LogicalPlan)] => Unit): Unit = {
    // The temporary query only lists the sources in order. The output is never computed.
    val inputs = streams.map(Project(Seq(Alias(Literal(1), "one")()), _))
    val plan = if (inputs.size == 1) inputs.head else Union(inputs)
    OneBatch.run(session, plan, checkpoint) { (batch, query) =>
      read(streams.zip(inputsOf(query).map(asBatchPlan(batch, _))))
    }
  }

  /** Splits the plan of the batch into the rows of each stream. */
  private def inputsOf(query: LogicalPlan): Seq[LogicalPlan] = {
    val inputs = query match {
      case union: Union => union.children
      case single => Seq(single)
    }
    inputs.map {
      case Project(_, input) => input
      case other => throw new IllegalStateException(s"unexpected input:\n$other")
    }
  }

  /** Returns the plan of a batch as a plan without streams. */
  private def asBatchPlan(batch: SparkSession, plan: LogicalPlan): LogicalPlan =
    OneBatch.asBatchPlan(batch, plan.transform { case rows: TableRows => rows.asBatchPlan })
}

/**
 * A source with `latestOffset`, which receives the previous offset. Only such a source can fix
 * the end of the input when a query with the trigger `AvailableNow` starts.
 */
private[changelog] trait LatestOffsetSource extends Source with SupportsTriggerAvailableNow {

  final override def getOffset: Option[Offset] =
    throw new IllegalStateException("latestOffset is called instead")
}

/** LatestOffsetProvider: a streaming source by the name of its format. */
private[changelog] abstract class LatestOffsetProvider(name: String)
    extends StreamSourceProvider
    with DataSourceRegister {

  override def shortName(): String = name

  protected def schemaOf(session: SparkSession, options: Map[String, String]): StructType

  /** @param folder the folder for the source, below the checkpoint */
  protected def source(session: SparkSession, options: Map[String, String], folder: Path): Source

  override def sourceSchema(
      sqlContext: SQLContext,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): (String, StructType) =
    (name, schemaOf(sessionOf(sqlContext), parameters))

  override def createSource(
      sqlContext: SQLContext,
      metadataPath: String,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): Source =
    source(sessionOf(sqlContext), parameters, new Path(metadataPath))

  private def sessionOf(sqlContext: SQLContext): SparkSession =
    sqlContext.sparkSession.asInstanceOf[SparkSession]
}

/**
 * ArrivalDependence: the reason why a node's output depends on the arrival of its input.
 * Recomputing the node gives other rows.
 */
sealed trait ArrivalDependence

object ArrivalDependence {

  /** `ROW_TTL`: rows expire by the time of their arrival. */
  case object ExpiresByAge extends ArrivalDependence

  /** `lookup`: rows are joined with the table as of their arrival. */
  case object LooksUp extends ArrivalDependence

  /** History by commit: rows have the time of the batch that brought them. */
  case object KeepsCommits extends ArrivalDependence

  /**
   * Rows of a stream are joined with an unfollowed table as of their arrival.
   *
   * @param table
   *   the relation of the table
   */
  final case class ReadsUntrackedTable(table: LogicalPlan) extends ArrivalDependence

  /**
   * @param node
   *   a node of a streaming query, analyzed or rewritten
   */
  def unapply(node: LogicalPlan): Option[ArrivalDependence] = node match {
    case _: RowTtl | _: ChangelogRowTtl => Some(ExpiresByAge)
    case _: CommitHistory => Some(KeepsCommits)
    case _: LookupTable | _: LookupJoin => Some(LooksUp)
    case join: ChangelogJoin if join.leftSide.form == SideForm.Nothing => Some(LooksUp)
    case scan: DataSourceV2ScanRelation => unapply(scan.relation)
    case table if FollowedTables.isTable(table) && !FollowedTables.isFixed(table) =>
      Some(ReadsUntrackedTable(table))
    case _ => None
  }
}

/** NullKeys: the handling of rows with a NULL key. */
private[changelog] object NullKeys {

  /**
   * Returns a branch for each nullable key column: an IS NULL condition, and the row kind for a
   * NULL.
   */
  def branches(
      types: ChangeTypes,
      key: Seq[Attribute],
      row: Seq[Attribute]): Seq[(Expression, Expression)] =
    key.filter(_.nullable).map { column =>
      val handled = Invoke(
        Literal.fromObject(types),
        "nullKey",
        ByteType,
        Seq(Literal(column.name), ToPrettyString(CreateStruct(row), Some("UTC"))),
        returnNullable = false)
      IsNull(column) -> handled
    }
}
