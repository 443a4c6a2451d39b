// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.hadoop.fs.Path

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.analysis.{SQLScalarFunction, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.{ExpressionColumnNode, SparkSession}
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.checkpoint.BatchLogs
import org.apache.spark.sql.changelog.identity.{CheckSameQuery, QueryRecord, QueryRecordFile}
import org.apache.spark.sql.changelog.sources.tables.{FollowedTables, TableTracking, TableVersion}

/**
 * TouchedPartitions: the partitions of a table changed since the last refresh of a view, and the view's rows computed
 * from them.
 *
 * {{{
 *   SELECT month(day) AS m, sum(amount) FROM sales GROUP BY month(day)     sales is partitioned by day
 *
 *   changed partitions       day = 2026-05-04
 *   rows computed            ... FROM sales WHERE month(day) IN (5) GROUP BY month(day)
 *   rows replaced            m IN (5)
 * }}}
 * The method requires a view column that is a function of the partition columns. A filter on this column must pass
 * through the whole query down to the table. All remaining inputs must be unchanged.
 *
 * @param checkpoint
 *   the checkpoint of the last refresh, with the versions read
 */
private[views] class TouchedPartitions(query: ViewQuery, checkpoint: Path) {
  import TouchedPartitions._

  private val session = query.session

  private lazy val candidates: Seq[Candidate] = candidatesOf(query)

  /** Returns whether the view has such a column. */
  def isPossible: Boolean = candidates.nonEmpty

  /**
   * Returns the changes up to the versions recorded in another checkpoint. Returns None if another input has changed,
   * or if recomputing the whole view costs little more.
   */
  def until(next: Path): Option[Touched] = {
    val before = versionsIn(new BatchLogs(session, checkpoint).lastRead)
    val after = versionsIn(new BatchLogs(session, next).readBy(0))
    if (isSameQuery) changed(before, after) else None
  }

  /** Returns whether the names in the query have kept their meaning since the view's rows were computed. */
  private def isSameQuery: Boolean = {
    val file = new QueryRecordFile(checkpoint, session.sessionState.newHadoopConf())
    val current =
      QueryRecord(query.changes.queryExecution.analyzed, session.sessionState.conf)
    try {
      CheckSameQuery(checkpoint.toString, file.read(), current)
      true
    } catch { case _: SparkThrowable => false }
  }

  private def changed(before: Readings, after: Readings): Option[Touched] = {
    val trackings = query.followed.map(tracking => tracking.name -> tracking).toMap
    // A table with two reads may have been read at two versions.
    val both = before.toSeq.collect { case (table, Seq(from)) =>
      after.get(table).collect { case Seq(until) => (trackings(table), from, until) }
    }.flatten
    val changed = both.filterNot { case (tracking, from, until) =>
      FollowedTables.isSameVersion(session, tracking, from, until)
    }
    changed match {
      case Seq((_, from, until)) if both.size == trackings.size => touched(from._2, until._2)
      case _ => None
    }
  }

  private def versionsIn(read: Seq[(Path, String)]): Readings =
    read
      .flatMap { case (folder, offset) => TableVersion.find(offset).map(folder -> _) }
      .groupBy { case (_, version) => version.table }

  private def touched(from: TableVersion, until: TableVersion): Option[Touched] = {
    val ofTable = candidates.filter(_.tracking.name == from.table)
    for {
      first <- ofTable.headOption
      changed <- FollowedTables.changedPartitions(session, first.tracking, from, until)
      listed <- FollowedTables.listed(session, first.tracking)
      sizes = ofTable.map(new Touched(_, changed)).map(one => one -> one.bytesIn(listed))
      (best, bytes) = sizes.minBy(_._2)
      if bytes * MostOfTable <= listed.sizeInBytes
    } yield best
  }
}

private[views] object TouchedPartitions {

  /** The versions of each table's reads, each with the folder of the source's files. */
  private type Readings = Map[String, Seq[(Path, TableVersion)]]

  /** The mode of a refresh that recomputes partitions. */
  val Mode = "partitions"

  /** The whole view is recomputed if more than half of the table's bytes would be read. */
  private val MostOfTable = 2

  /**
   * A view column by which changed partitions can be recomputed.
   *
   * @param stream
   *   the only read of the table in the query
   * @param column
   *   a column of the view
   * @param value
   *   the same column as a function of the partition columns
   */
  private case class Candidate(
      tracking: TableTracking,
      stream: LogicalPlan,
      partitions: Seq[Attribute],
      column: String,
      value: Expression)

  /**
   * Changed partitions.
   *
   * @param changed
   *   values of the partition columns, as written by Delta
   */
  final class Touched(candidate: Candidate, changed: Seq[Map[String, String]]) {

    private val values: Seq[Literal] = changed
      .map { partition =>
        val known = AttributeMap(candidate.partitions.map { column =>
          column -> Cast(Literal(partition(column.name)), column.dataType, Some("UTC"))
        })
        val value = candidate.value.transform { case column: Attribute => known(column) }
        Literal.create(value.eval(), value.dataType)
      }
      .distinctBy(_.value)

    /** The condition for rows of the table, true or false. */
    private val ofTable: Expression = isTouched(candidate.value)

    /** Returns the size of the table's files to read. */
    def bytesIn(table: FileIndex): Long =
      table.listFiles(Seq(ofTable), Nil).flatMap(_.files).map(_.getLen).sum

    /** The condition for rows of the view, true or false. */
    def ofView: Column =
      Column(ExpressionColumnNode(isTouched(UnresolvedAttribute(Seq(candidate.column)))))

    private def isTouched(value: Expression): Expression = {
      val (known, unknown) = values.partition(_.value != null)
      val isKnown = And(IsNotNull(value), In(value, known))
      if (unknown.isEmpty) isKnown else Or(IsNull(value), isKnown)
    }

    /** Restricts the read to the rows of changed partitions. */
    def restrict(delivered: RowsByBatchPlan.Read): RowsByBatchPlan.Read = {
      def isOfTable(stream: LogicalPlan) = stream.outputSet == candidate.stream.outputSet
      require(delivered.count { case (stream, _) => isOfTable(stream) } == 1)
      delivered.map {
        case (stream, rows) if isOfTable(stream) =>
          val inRows = AttributeMap(stream.output.zip(rows.output))
          val condition = ofTable.transform { case column: Attribute => inRows(column) }
          stream -> Filter(condition, rows)
        case other => other
      }
    }

    def describe: String =
      s"${changed.size} partitions of ${candidate.tracking.name} have changed: " +
        s"rows of ${values.size} values of ${candidate.column} were recomputed"
  }

  /** Returns the tables with recomputable partitions, each with the view columns that select the rows to replace. */
  def columnsOf(query: ViewQuery): Seq[(String, Seq[String])] =
    candidatesOf(query).groupMap(_.tracking.name)(_.column).toSeq.sortBy(_._1)

  private def candidatesOf(query: ViewQuery): Seq[Candidate] =
    if (query.readsTime || query.whyNotRecomputable.nonEmpty || query.views.nonEmpty) Nil
    else {
      val plan = RowsByBatchPlan.withoutChanges(query.analyzed)
      query.followed.flatMap { tracking =>
        plan.collectWithSubqueries { case leaf if reads(leaf, tracking.name) => leaf } match {
          case Seq(stream) =>
            val columns = partitionColumns(query.session, tracking, stream)
            val derived = if (columns.isEmpty) None else derivedColumns(plan, stream, columns)
            derived.toSeq.flatMap(_.map { case (column, value) =>
              // The value fails at most for rows that the query filters out.
              val safe = if (value.isInstanceOf[Attribute]) value else TryEval(value)
              Candidate(tracking, stream, columns, column.name, safe)
            })
          case _ => None
        }
      }
    }

  private def partitionColumns(
      session: SparkSession,
      tracking: TableTracking,
      stream: LogicalPlan): Seq[Attribute] = {
    val schema = FollowedTables.partitionsOf(session, tracking)
    val found = schema.flatMap(field => stream.output.find(_.name == field.name))
    if (found.size == schema.size && schema.forall(field => isPlain(field.dataType))) found
    else Nil
  }

  private def reads(leaf: LogicalPlan, table: String): Boolean = leaf match {
    case stream: StreamingRelation =>
      stream.dataSource.options.get(TableTracking.Table).contains(table)
    case _ => false
  }

  /** Returns whether values of a type are equal exactly if their texts are equal, in any time zone. */
  private def isPlain(dataType: DataType): Boolean = dataType match {
    case text: StringType => text == StringType
    case _: IntegralType | BooleanType | DateType => true
    case _ => false
  }

  /**
   * Returns the columns of a plan computed from some columns of a leaf only. A filter on these columns gives the same
   * rows above the plan and above the leaf.
   */
  private[views] def derivedColumns(
      plan: LogicalPlan,
      leaf: LogicalPlan,
      columns: Seq[Attribute]): Option[AttributeMap[Expression]] =
    if (plan eq leaf) Some(AttributeMap(columns.map(column => column -> column)))
    else if (!plan.deterministic || !plan.subqueries.forall(isExact)) None
    else {
      val below =
        plan.children.flatMap(child => derivedColumns(child, leaf, columns).map(child -> _))
      below match {
        case Seq((child, derived))
            if plan.children.forall(other => (other eq child) || isExact(other)) =>
          above(plan, child, derived).filter(_.nonEmpty)
        case _ => None
      }
    }

  /** Returns whether a plan over unchanged input computes equal rows in every run, without ties. */
  private def isExact(plan: LogicalPlan): Boolean = !plan.exists {
    case _: GlobalLimit | _: LocalLimit | _: Offset | _: Window | _: Deduplicate | _: Sample =>
      true
    case node => !node.subqueries.forall(isExact)
  }

  private def above(
      plan: LogicalPlan,
      child: LogicalPlan,
      derived: AttributeMap[Expression]): Option[AttributeMap[Expression]] = {
    def valueOf(expression: Expression): Option[Expression] = {
      val called = expression.transform { case function: SQLScalarFunction => function.child }
      Option.when(
        called.deterministic && called.references.nonEmpty &&
          called.references.forall(derived.contains) && isPlain(called.dataType) &&
          !called.exists {
            case _: Attribute => false
            case other => other.isInstanceOf[Unevaluable]
          }) {
        called.transformUp { case column: Attribute => derived(column) }
      }
    }
    def unnamed(column: NamedExpression): Expression = column match {
      case Alias(child, _) => child
      case other => other
    }
    def named(list: Seq[NamedExpression]) = AttributeMap(list.flatMap { column =>
      valueOf(unnamed(column)).map(column.toAttribute -> _)
    })
    def only(kept: Attribute => Boolean) =
      AttributeMap(derived.toSeq.filter { case (column, _) => kept(column) })
    plan match {
      case Project(list, _) => Some(named(list))
      case _: Filter | _: SubqueryAlias | _: View | _: Distinct | _: Sort | _: ResolvedHint |
          _: RepartitionOperation | _: RebalancePartitions =>
        Some(derived)
      case aggregate: Aggregate =>
        val groups = aggregate.groupingExpressions
        Some(named(aggregate.aggregateExpressions.filter { column =>
          groups.exists(_.semanticEquals(unnamed(column)))
        }))
      case rows: Deduplicate => Some(only(AttributeSet(rows.keys).contains))
      case window: Window =>
        Some(only(column => window.partitionSpec.exists(_.semanticEquals(column))))
      case generate: Generate => Some(only(generate.outputSet.contains))
      case join: Join =>
        val passes =
          if (child eq join.left) join.joinType match {
            case _: InnerLike | LeftOuter | LeftSemi | LeftAnti => true
            case _ => false
          }
          else
            join.joinType match {
              case _: InnerLike | RightOuter => true
              case _ => false
            }
        Option.when(passes)(derived)
      case _ => None
    }
  }
}
