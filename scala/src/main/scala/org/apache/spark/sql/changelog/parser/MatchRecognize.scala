// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.functions.PatternSlot._
import org.apache.spark.sql.changelog.functions._

/**
 * The plan of a call of `match_recognize`.
 *
 * Conditions and measures are expressions of Spark. In place of a variable's row they read a slot, which is a column of
 * the type of a row during analysis, and a parameter of a function afterwards.
 */
private final class MatchRecognize(source: LogicalPlan, clauses: MatchClauses) {
  import RowPatternReader.{invalid, of}

  private val session = castToImpl(SparkSession.active).sessionState
  private val setNames: Seq[String] = clauses.variables ++ clauses.subsets.map(_._1)
  private val slots = new RowPatternSlots(source, setNames)
  import slots.{any, known, setOf, slot, slotted}

  def plan: LogicalPlan = {
    val partition = clauses.partition.fold(Seq.empty[NamedExpression])(columns)
    val order = orders
    val (names, measures) = expressions(clauses.measures).map {
      case Alias(value, name) => name -> value
      case other =>
        throw invalid(other.sql, "expected a name, as in LAST(A.price) AS last_price")
    }.unzip
    val results = resolve(clauses.measures, measures.map(slotted))
    val bodies = mutable.ArrayBuffer.empty[(Expression, Seq[Attribute])]
    def add(body: Expression, parameters: Attribute*): Int = {
      val read = body.collect { case column: Attribute => column }.distinctBy(_.exprId)
      bodies += body -> (if (parameters.isEmpty) read else parameters)
      bodies.size - 1
    }
    results.foreach(add(_))
    val conditions = definitions.map { case (variable, text) => variable -> add(condition(text)) }
    val within = clauses.within.map(text => add(atMost(text, order.head)))
    val sets = variableSets
    val patternFolds = slots.folds.toSeq.map { case ((set, _), fold) =>
      PatternFold(set, add(fold.zero), add(fold.update, fold.value, any))
    }
    val reads = new ReadColumns(bodies.toSeq.map(_._1), order)
    val functions = bodies.toSeq.map { case (body, parameters) =>
      reads.function(body, parameters)
    }
    val pattern = RowPattern(
      clauses.steps,
      clauses.variables.zip(sets).map { case (name, sets) =>
        PatternVariable(name, conditions.get(name), sets)
      },
      names,
      within,
      patternFolds,
      functions.map(_._2),
      skip,
      order.zipWithIndex.map { case (sort, at) =>
        sort.copy(
          child = BoundReference(at, sort.dataType, nullable = true),
          sameOrderExpressions = Nil)
      })
    val rows = CollectList(reads.row).toAggregateExpression()
    val matches = Alias(MatchRows(rows, functions.map(_._1), pattern), "matches")()
    val groups = partition.map {
      case Alias(value, _) => value
      case column => column
    }
    val columnsOfMeasures = names.zip(results).map { case (name, measure) =>
      AttributeReference(name, measure.dataType)()
    }
    val generate = Generate(
      Inline(matches.toAttribute),
      Seq(partition.size),
      outer = false,
      None,
      columnsOfMeasures,
      Aggregate(groups, partition :+ matches, source))
    Project(partition.map(_.toAttribute) ++ columnsOfMeasures, generate)
  }

  // ---- names ----

  /** Returns the sets that contain the rows of each variable. */
  private def variableSets: Seq[Seq[Int]] = {
    val subsets = clauses.subsets.map(_._2.map(known(_, clauses.variables)))
    clauses.variables.zipWithIndex.map { case (name, at) =>
      val others = subsets.zipWithIndex.collect {
        case (members, subset) if members.contains(name) => clauses.variables.size + subset + 1
      }
      Seq(0, at + 1) ++ others
    }
  }

  private def definitions: Map[String, String] = {
    clauses.subsets
      .map(_._1)
      .filter(name => clauses.variables.exists(_.equalsIgnoreCase(name)))
      .foreach(name => throw invalid(name, "expected a name that is no variable of PATTERN"))
    val named = clauses.definitions.map { case (name, text) =>
      known(name, clauses.variables) -> text
    }
    named.groupBy(_._1).values.find(_.size > 1).foreach { twice =>
      throw invalid(twice.head._1, "expected one definition of a variable")
    }
    named.toMap
  }

  private def skip: AfterMatch = clauses.skip match {
    case None => AfterMatch.PastLastRow
    case Some((_, None)) => AfterMatch.NextRow
    case Some((isFirst, Some(name))) =>
      AfterMatch.ToRow(setOf(known(name, setNames)), isFirst, name)
  }

  // ---- expressions ----

  private def expressions(text: String): Seq[Expression] =
    of(text)(session.sqlParser.parsePlan(s"SELECT $text")) match {
      case Project(list, OneRowRelation()) => list
      case _ => throw invalid(text, "expected expressions, separated by commas")
    }

  private def columns(text: String): Seq[NamedExpression] =
    resolved(
      text,
      expressions(text).collect { case named: NamedExpression => named },
      source.output)

  private def orders: Seq[SortOrder] = {
    val text = clauses.order
    val parsed = of(text)(session.sqlParser.parsePlan(s"SELECT 1 ORDER BY $text")) match {
      case sort: Sort => sort.order
      case _ => throw invalid(text, "expected columns, separated by commas")
    }
    val values = resolved(text, parsed.map(order => Alias(order.child, "value")()), source.output)
    parsed.zip(values).map { case (order, value) =>
      if (!RowOrdering.isOrderable(value.dataType)) {
        throw invalid(text, s"values of type ${value.dataType.sql} have no order")
      }
      order.copy(child = value.asInstanceOf[Alias].child)
    }
  }

  private def condition(text: String): Expression = {
    val parsed = of(text)(session.sqlParser.parseExpression(text))
    val condition = resolve(text, Seq(slotted(parsed))).head
    if (condition.dataType != BooleanType) throw invalid(text, "expected a condition")
    condition
  }

  /** Returns the condition that the last row is at most the interval after the first row. */
  private def atMost(text: String, order: SortOrder): Expression = {
    val interval = of(text)(session.sqlParser.parseExpression(text))
    if (order.direction != Ascending) {
      throw invalid(text, "WITHIN needs an ascending time as the first column of ORDER BY")
    }
    interval match {
      case Literal(_, _: AnsiIntervalType | CalendarIntervalType) =>
      case _ => throw invalid(text, "expected an interval, as in INTERVAL '1' HOUR")
    }
    def time(isFirst: Boolean) = {
      val row = slot(RowAt(0, isFirst, 0, 0))
      order.child.transformUp { case column: Attribute => field(row, column) }
    }
    resolve(
      text,
      Seq(LessThanOrEqual(time(isFirst = false), Add(time(isFirst = true), interval)))).head
  }

  private def field(row: Attribute, column: Attribute): Expression = {
    val at = source.output.indexWhere(_.exprId == column.exprId)
    GetStructField(row, at, Some(column.name))
  }

  /** Returns expressions over slots as the analyzer resolves them. */
  private def resolve(text: String, values: Seq[Expression]): Seq[Expression] =
    resolved(text, values.map(Alias(_, "value")()), slots.columns.values.toSeq).map {
      case Alias(value, _) => value
      case value => value
    }

  private def resolved(
      text: String,
      values: Seq[NamedExpression],
      over: Seq[Attribute]): Seq[NamedExpression] =
    of(text)(session.executePlan(Project(values, LocalRelation(over))).analyzed) match {
      case Project(list, _: LocalRelation)
          if list.forall(value =>
            value.deterministic && !SubqueryExpression.hasSubquery(value)) =>
        list
      case _ =>
        throw invalid(
          text,
          "expected expressions of the columns, without subqueries, windows, generators and random values")
    }

  /** The columns of the source that are read, as a row: first those of ORDER BY. */
  private final class ReadColumns(bodies: Seq[Expression], order: Seq[SortOrder]) {
    private val rowIds = slots.columns.collect { case (_: RowAt, column) =>
      column.exprId
    }.toSet + any.exprId
    private val slotOf = slots.columns.map { case (slot, column) => column.exprId -> slot }

    private def isRow(column: Attribute) = rowIds(column.exprId)

    private val columns = {
      val read = bodies.flatMap(_.collect {
        case GetStructField(column: Attribute, at, _) if isRow(column) => at
      })
      val sorted = order.map(_.child)
      val others = read.distinct.sorted.map(source.output)
      sorted ++ others.filterNot(column => sorted.exists(_.semanticEquals(column)))
    }

    val row: CreateNamedStruct = CreateNamedStruct(columns.zipWithIndex.flatMap {
      case (column, at) => Seq(Literal(s"c$at"), column)
    })

    /** Returns an expression over slots as a function, and the slots of its parameters. */
    def function(
        body: Expression,
        parameters: Seq[Attribute]): (LambdaFunction, Seq[PatternSlot]) = {
      val variables = parameters.map { column =>
        val dataType = if (isRow(column)) row.dataType else column.dataType
        column.exprId -> NamedLambdaVariable(column.name, dataType, nullable = true)
      }
      val byId = variables.toMap
      val function = body.transform {
        case GetStructField(column: Attribute, at, _) if isRow(column) =>
          val place = columns.indexWhere(_.semanticEquals(source.output(at)))
          GetStructField(byId(column.exprId), place, Some(s"c$place"))
        case column: Attribute => byId(column.exprId)
      }
      LambdaFunction(function, variables.map(_._2)) ->
        parameters.flatMap(column => slotOf.get(column.exprId))
    }
  }
}
