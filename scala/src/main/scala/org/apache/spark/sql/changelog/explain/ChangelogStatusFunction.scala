// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import java.time.Instant

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{
  FunctionSignature, LeafNode, LogicalPlan, NamedParametersSupport, Statistics
}
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.execution.{LeafExecNode, LocalTableScanExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.execution.{RunningOperator, RunningPlans, RunningQuery}
import org.apache.spark.sql.changelog.functions.FunctionArguments
import org.apache.spark.sql.changelog.plans.OperatorNumber.{Count, Ratio}
import org.apache.spark.sql.changelog.plans.{ExplainNode, OperatorNumber, OperatorNumbers}

/**
 * The SQL table function `changelog_status`: the last batch and the state of each operator, for the running
 * queries of this application.
 *
 * {{{
 *   SELECT query, operator, state_rows FROM changelog_status() ORDER BY state_bytes DESC
 * }}}
 */
object ChangelogStatusFunction {
  val Name = "changelog_status"

  val description: FunctionArguments.Description =
    FunctionArguments.describe(
      Name,
      "What the operators of running queries did in their last batch")(build)

  private def build(expressions: Seq[Expression]): LogicalPlan = {
    NamedParametersSupport
      .defaultRearrange(FunctionSignature(Nil), expressions, Name, SQLConf.get.resolver)
    StatusRows(StatusColumns.attributes)
  }
}

/** The rows of `changelog_status()`, computed when a query reads them. */
private[explain] case class StatusRows(output: Seq[Attribute])
    extends LeafNode
    with MultiInstanceRelation {

  override def newInstance(): StatusRows = copy(output.map(_.newInstance()))

  override def computeStats(): Statistics = Statistics(sizeInBytes = 10000)
}

private[explain] case class StatusRowsExec(output: Seq[Attribute]) extends LeafExecNode {

  private lazy val now: SparkPlan = LocalTableScanExec(output, StatusColumns.rows, None)

  override def executeCollect(): Array[InternalRow] = now.executeCollect()

  override protected def doExecute(): RDD[InternalRow] = now.execute()
}

/** Plans `changelog_status()`. */
object StatusStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case StatusRows(output) => StatusRowsExec(output) :: Nil
    case _ => Nil
  }
}

/** The columns of `changelog_status()`, and the current rows. */
private[explain] object StatusColumns {

  /**
   * The source of a row's values.
   *
   * @param node
   *   the operator's node in the query; empty for Spark's own operators
   */
  private case class Source(
      query: RunningQuery,
      operator: Option[RunningOperator],
      node: Option[ExplainNode]) {
    def numbers: Option[OperatorNumbers] = operator.map(_.numbers)
  }

  private case class Column(name: String, dataType: DataType, value: Source => Option[Any])

  private def column(number: OperatorNumber): Column = number match {
    case time: Count if time.isTime =>
      Column(time.column, DoubleType, _.numbers.flatMap(time.value).map(_ / 1000.0))
    case count: Count => Column(count.column, LongType, _.numbers.flatMap(count.value))
    case ratio: Ratio => Column(ratio.column, DoubleType, _.numbers.flatMap(ratio.value))
  }

  private val columns: Seq[Column] = Seq(
    Column("query", StringType, _.query.name),
    Column("query_id", StringType, source => Some(source.query.id)),
    Column("run_id", StringType, source => Some(source.query.runId)),
    Column("batch_id", LongType, _.query.progress.map(_.batchId)),
    Column(
      "batch_time",
      TimestampType,
      _.query.progress.map(done => Instant.parse(done.timestamp))),
    Column("batch_seconds", DoubleType, _.query.progress.map(_.batchDuration / 1000.0)),
    Column("compiled_classes", LongType, source => Some(source.query.compiled)),
    Column("operator_id", LongType, _.operator.map(_.id)),
    Column("operator", StringType, _.operator.map(_.name)),
    Column("node", StringType, _.node.map(node => s"${node.node} ${node.detail}".trim)),
    Column(
      "state_bound",
      StringType,
      _.node.map(_.state.map(_.boundedBy).distinct.mkString("; ")))) ++
    OperatorNumber.all.map(column)

  private val schema = StructType(
    columns.map(column => StructField(column.name, column.dataType)))

  def attributes: Seq[Attribute] =
    columns.map(column => AttributeReference(column.name, column.dataType)())

  /** The rows: one per operator, and one for a query without operators. */
  def rows: Seq[InternalRow] = {
    val toCatalyst = CatalystTypeConverters.createToCatalystConverter(schema)
    RunningPlans.all
      .filter(_.isActive)
      .sortBy(query => (query.name, query.id))
      .flatMap(sources)
      .map { source =>
        val values = columns.map(column => column.value(source).orNull)
        toCatalyst(Row.fromSeq(values)).asInstanceOf[InternalRow]
      }
  }

  private def sources(query: RunningQuery): Seq[Source] = {
    val nodes = query.trees.flatMap(_.nodes)
    val ofOperators = query.operators.map { operator =>
      Source(query, Some(operator), nodes.find(_.operators.contains(operator.id)))
    }
    if (ofOperators.isEmpty) Seq(Source(query, None, None)) else ofOperators
  }
}
