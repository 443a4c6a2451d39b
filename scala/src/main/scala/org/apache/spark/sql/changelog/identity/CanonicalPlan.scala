// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import java.security.MessageDigest

import scala.collection.mutable

import org.json4s.JsonAST._

import org.apache.spark.sql.catalyst.analysis.{ResolvedInlineTable, SQLFunctionNode}
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.catalyst.{InternalRow, TableIdentifier}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.identity.CanonicalValue.digest
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.sources.tables.FollowedTables

/**
 * Writes plans as text. Equivalent plans have equal text at every start of a query.
 *
 * {{{
 *   Project [g#3 AS city#9, s#7]                 Aggregate [s1.g], [sum(s1.v)]
 *   +- Aggregate [g#3], [g#3, sum(v#4) AS s#7]   +- Filter (s1.v > 1:int)
 *      +- Filter (v#4 > 1)                  =>      +- from_changelog retract key=[s1.id]
 *         +- FromChangelog ...                         +- stream 1
 * }}}
 *
 * A column is named after the column's origin. An origin is a column of a source, or a computing
 * node and the position in the node's output. Projections, aliases, qualifiers and views
 * therefore appear only in their readers.
 */
private[changelog] object CanonicalPlan {

  def apply(plan: LogicalPlan): CanonicalNode = {
    val described = new Writer(isOptimized = false, _.toString, textOf).describe(plan, Map.empty)
    val columns = plan.output.map(column => described.columns(column.exprId))
    CanonicalNode(columns.mkString("result [", ", ", "]"), described.nodes)
  }

  /**
   * Returns the lines of a source's nodes, and of its computed columns. Readers name the other
   * columns themselves, so further columns of a table change nothing.
   */
  def ofSource(source: FromChangelog): Seq[String] = {
    val writer = new Writer(isOptimized = false, _.toString, textOf)
    val described = writer.describe(source, Map.empty)
    val computed = source.output.flatMap { column =>
      val text = described.columns(column.exprId)
      Option.when(text != ofColumn(1, column))(s"${column.name} = $text")
    }
    computed ++ described.nodes.flatMap(_.lines)
  }

  /** Returns the text of a column of a source, or of a table. */
  private def ofColumn(source: Int, column: Attribute): String =
    s"s$source.${column.name}:${shortened(column.dataType.catalogString)}"

  /**
   * Returns the text of each node of an optimized query, equal in every batch. The text omits the
   * plan below `from_changelog`, because Spark simplifies the plan in a batch without input.
   *
   * Dates and times among constants have one text, `time`, as in records of the first version.
   * The text of the analyzed query distinguishes them.
   */
  def texts(plan: LogicalPlan): LogicalPlan => String = texts(
    plan,
    _.toString,
    literal => if (literal.dataType.isInstanceOf[DatetimeType]) "time" else textOf(literal))

  /**
   * Returns the text of each node with complete constants. Nodes with equal texts compute the
   * same.
   *
   * @param source
   *   the name of a source, by number
   */
  def exactTexts(plan: LogicalPlan, source: Int => String): LogicalPlan => String =
    texts(plan, source, literal => s"${exact(literal)}:${literal.dataType.catalogString}")

  private def texts(
      plan: LogicalPlan,
      source: Int => String,
      constant: Literal => String): LogicalPlan => String = {
    val writer = new Writer(isOptimized = true, source, constant)
    writer.describe(plan, Map.empty)
    node => Option(writer.texts.get(node)).getOrElse(node.nodeName)
  }

  private def textOf(literal: Literal): String =
    s"${CanonicalValue(literal.value, literal.dataType)}:${literal.dataType.catalogString}"

  /**
   * Returns the bytes of a constant. The text of a variant, or of invalid UTF-8, loses
   * information.
   */
  private def exact(literal: Literal): String = literal.dataType match {
    case _: ObjectType => CanonicalValue(literal.value, literal.dataType)
    case dataType =>
      val row = UnsafeProjection.create(Array(dataType))(InternalRow(literal.value))
      CanonicalValue(row.getBytes, BinaryType)
  }

  private type Columns = Map[ExprId, String]

  /** The canonical nodes of a plan, and its columns. A projection has no node of its own. */
  private case class Described(nodes: Seq[CanonicalNode], columns: Columns)

  private class Writer(isOptimized: Boolean, source: Int => String, constant: Literal => String) {
    val texts = new java.util.IdentityHashMap[LogicalPlan, String]
    private var numNodes = 0
    private var numSources = 0

    /**
     * @param outer
     *   the known columns outside a subquery
     */
    def describe(plan: LogicalPlan, outer: Columns): Described = plan match {
      // The files of a view by this extension change after each batch.
      case view: View if view.desc.properties.keys.exists(_.startsWith("changelog.view.")) =>
        ofTable(view.desc.identifier, view)
      case _: SubqueryAlias | _: View | _: ResolvedHint | _: WithCTE | _: SQLFunctionNode =>
        describe(plan.children.last, outer)
      case Project(expressions, child) =>
        val below = describe(child, outer)
        val subqueries = new Subqueries(below.columns, outer)
        val columns = expressions.map(column => column.exprId -> subqueries.text(column)).toMap
        Described(below.nodes ++ subqueries.nodes, columns)
      case changes: FromChangelog if isOptimized =>
        val columns = Seq(changes.key, changes.sequence, changes.output)
        val names = columns.map(_.map(_.name).mkString("[", ", ", "]")).mkString(" ")
        val rows = s"${changes.input} ${changes.duplicates}"
        leaf(s"from_changelog ${source(changes.number)} $rows $names", changes)
      // The source's location is recorded beside the query, and may change.
      case stream: LeafNode if stream.isStreaming => leaf("stream", stream)
      case LogicalRelation(_, _, Some(table), _, _) => ofTable(table.identifier, plan)
      case LogicalRelation(files: HadoopFsRelation, _, None, _, _) =>
        val paths = files.location.rootPaths.map(_.toString).sorted
        leaf(paths.mkString("files ", " ", versionOf(plan)), plan)
      case hive: HiveTableRelation => ofTable(hive.tableMeta.identifier, hive)
      case relation: DataSourceV2Relation =>
        leaf(
          (s"table ${relation.name}" +: relation.timeTravelSpec.map(_.toString).toSeq)
            .mkString(" "),
          relation)
      case range: Range => leaf(s"range ${range.start} ${range.end} ${range.step}", range)
      case local: LocalRelation =>
        val types = local.output.map(_.dataType)
        leaf(s"rows ${digest(local.data.map(CanonicalValue.ofRow(_, types)).mkString)}", local)
      case table: ResolvedInlineTable =>
        val texts = new Subqueries(Map.empty, outer)
        leaf(
          table.rows.map(_.map(texts.text).mkString("(", ", ", ")")).mkString("rows ", " ", ""),
          table)
      case other: LeafNode => leaf(other.nodeName, other)
      case join @ (_: Join | _: LateralJoin | _: TemporalJoin | _: LookupJoin) =>
        node(join, outer, keepsColumns = true)
      case _: UnaryNode => node(plan, outer, keepsColumns = true)
      case _ => node(plan, outer, keepsColumns = false)
    }

    private def ofTable(table: TableIdentifier, plan: LogicalPlan): Described =
      leaf(s"table ${table.unquotedString}${versionOf(plan)}", plan)

    /** Returns the fixed version of a table read by time travel. */
    private def versionOf(plan: LogicalPlan): String =
      FollowedTables.fixedVersion(plan).fold("")(version => s" version $version")

    private def leaf(name: String, plan: LogicalPlan): Described = {
      numSources += 1
      val names = plan.output.map(_.name)
      val columns = plan.output.zipWithIndex.map { case (column, place) =>
        val other = if (names.count(_ == column.name) > 1) s"#$place" else ""
        column.exprId -> ofColumn(numSources, column.withName(column.name + other))
      }
      val text = s"s$numSources: $name"
      texts.put(plan, text)
      Described(Seq(CanonicalNode(text, Nil)), columns.toMap)
    }

    /**
     * @param keepsColumns
     *   whether a column of an input has an equal value in the output
     */
    private def node(plan: LogicalPlan, outer: Columns, keepsColumns: Boolean): Described = {
      val inputs = plan.children.map(describe(_, outer))
      val below: Columns = inputs.map(_.columns).foldLeft(Map.empty: Columns)(_ ++ _)
      val known = if (keepsColumns) below ++ renamed(plan, below) else Map.empty: Columns
      val makes = plan.output.exists(column => !known.contains(column.exprId))
      if (makes) numNodes += 1
      val number = s"n$numNodes"
      val made = plan.output.zipWithIndex.map { case (column, place) =>
        column.exprId -> known.getOrElse(column.exprId, s"$number.$place")
      }
      val subqueries = new Subqueries(made.toMap ++ below, outer)
      val arguments =
        (argumentsOf(plan) ++ skewOf(plan)).flatMap(subqueries.argument).filter(_.nonEmpty)
      val label = if (makes) s"$number: " else ""
      val node = s"$label${(plan.nodeName +: arguments).mkString(" ")}"
      val over = plan.children
        .zip(inputs)
        .map { case (child, input) =>
          child.output.map(column => input.columns(column.exprId)).mkString(" over [", ", ", "]")
        }
        .mkString
      texts.put(plan, node + over)
      val text = if (readsSomeColumns(plan)) node else node + over
      Described(Seq(CanonicalNode(text, inputs.flatMap(_.nodes) ++ subqueries.nodes)), made.toMap)
    }

    /** Returns the columns of an aggregate that only rename a column of the input. */
    private def renamed(plan: LogicalPlan, below: Columns): Columns = plan match {
      case Aggregate(_, results, _, _) =>
        results.collect {
          case alias @ Alias(column: Attribute, _) if below.contains(column.exprId) =>
            alias.exprId -> below(column.exprId)
        }.toMap
      case _ => Map.empty
    }

    /** Whether a node depends only on the input columns named by its arguments. */
    private def readsSomeColumns(plan: LogicalPlan): Boolean = plan match {
      case _: Filter | _: Aggregate | _: Window | _: Sort | _: Generate | _: EventTimeWatermark =>
        true
      case _: Join | _: LateralJoin | _: TemporalJoin | _: LookupJoin => true
      case _: GlobalLimit | _: LocalLimit | _: Offset | _: CollectMetrics | _: Skew => true
      case _: FromChangelog | _: ToChangelog => true
      case _ => false
    }

    /** The texts of one node's expressions, and the plans of their subqueries. */
    private class Subqueries(columns: Columns, outer: Columns) {
      val nodes = mutable.ArrayBuffer.empty[CanonicalNode]

      private val texts = new CanonicalExpression(
        outer ++ columns,
        plan => {
          val described = describe(plan, outer ++ columns)
          val result = plan.output.map(column => described.columns(column.exprId))
          numNodes += 1
          nodes += CanonicalNode(
            s"q$numNodes: ${result.mkString("[", ", ", "]")}",
            described.nodes)
          s"q$numNodes"
        },
        constant)

      def text(expression: Expression): String = shortened(texts(expression))

      def argument(value: Any): Option[String] = value match {
        case several: Seq[_] if several.nonEmpty && several.forall(_.isInstanceOf[Expression]) =>
          Some(several.map(e => text(e.asInstanceOf[Expression])).mkString("[", ", ", "]"))
        case expression: Expression => Some(text(expression))
        case other => texts.argument(other)
      }
    }
  }

  private def argumentsOf(plan: LogicalPlan): Seq[Any] = plan match {
    case root: ToChangelog =>
      Seq[Any](root.mode, root.key) ++ Some(root.emission).filter(_ != Emission.Changes)
    case source: FromChangelog =>
      Seq(
        source.input,
        source.duplicates,
        source.key,
        source.sequence,
        source.kind,
        source.unavailable)
    case generate: Generate => Seq(generate.generator, generate.outer)
    case watermark: EventTimeWatermark => Seq(watermark.eventTime, watermark.delay.toString)
    case aggregate: Aggregate =>
      Seq(aggregate.groupingExpressions, aggregate.aggregateExpressions)
    case metrics: CollectMetrics => Seq(metrics.name, metrics.metrics)
    case loop: UnionLoop => Seq(loop.limit, loop.maxDepth)
    case _: UnionLoopRef => Nil
    case filter: TemporalFilter => Seq(filter.condition)
    // The length of the TTL may change.
    case _: RowTtl => Nil
    case skew: Skew => Seq(skew.columns, skew.values.flatten)
    case emit: Emit => Seq(emit.emission, emit.times, emit.delays, emit.order)
    case history: CommitHistory => Seq(history.key)
    // The operator stores the rows of its inputs only.
    case _: RecursiveQuery => Nil
    case join: Join => Seq(join.joinType.toString.takeWhile(_ != '('), join.condition)
    case other => other.productIterator.toSeq
  }

  /**
   * Returns the parameters for spreading a join's rows, apart from the join key. The hot values
   * are constants of the query.
   */
  private def skewOf(join: LogicalPlan): Seq[Any] = SkewedSide.of(join).toSeq.flatMap { skew =>
    Seq(skew.isLeft, skew.columns, skew.values.flatten.map(_.sql), skew.ways)
  }

  /**
   * Shortens long texts. Deeply nested expressions would otherwise double with each projection.
   */
  private def shortened(text: String): String =
    if (text.length <= LongestText) text else s"${text.take(LongestText / 2)}…${digest(text)}"

  private val LongestText = 2000
}

/**
 * A node of a query as recorded, with the same text at every start.
 *
 * @param text
 *   the node's name and arguments
 */
private[changelog] final case class CanonicalNode(text: String, inputs: Seq[CanonicalNode]) {

  /** Returns one line per node, inputs indented. */
  def lines: Seq[String] = text +: inputs.flatMap(_.lines).map("  " + _)

  def toJson: JValue =
    if (inputs.isEmpty) JString(text)
    else JObject("node" -> JString(text), "inputs" -> JArray(inputs.map(_.toJson).toList))
}

private[changelog] object CanonicalNode {
  def fromJson(json: JValue): CanonicalNode = json match {
    case JString(text) => CanonicalNode(text, Nil)
    case node =>
      val JString(text) = node \ "node": @unchecked
      val JArray(inputs) = node \ "inputs": @unchecked
      CanonicalNode(text, inputs.map(fromJson))
  }
}

/** Writes values of Catalyst by content, with quoted texts. */
private[changelog] object CanonicalValue {

  def apply(value: Any, dataType: DataType): String = (value, dataType) match {
    case (null, _) => "NULL"
    case (text: UTF8String, _) => quoted(text.toString)
    case (bytes: Array[Byte], _) => bytes.map(byte => f"$byte%02x").mkString("X'", "", "'")
    case (array: ArrayData, ArrayType(element, _)) =>
      array.toSeq[Any](element).map(apply(_, element)).mkString("[", ", ", "]")
    case (map: MapData, MapType(key, element, _)) =>
      s"${apply(map.keyArray(), ArrayType(key))} -> ${apply(map.valueArray(), ArrayType(element))}"
    case (row: InternalRow, struct: StructType) => ofRow(row, struct.map(_.dataType))
    case (other, user: UserDefinedType[_]) => apply(other, user.sqlType)
    case (other, _) => other.toString
  }

  def ofRow(row: InternalRow, types: Seq[DataType]): String =
    row
      .toSeq(types)
      .zip(types)
      .map { case (value, dataType) => apply(value, dataType) }
      .mkString("(", ", ", ")")

  def quoted(text: String): String = s"'${text.replace("\\", "\\\\").replace("'", "\\'")}'"

  /** Returns a short hash of a text that is long or secret. */
  def digest(text: String): String =
    MessageDigest
      .getInstance("SHA-256")
      .digest(text.getBytes("UTF-8"))
      .take(8)
      .map(byte => f"$byte%02x")
      .mkString
}
