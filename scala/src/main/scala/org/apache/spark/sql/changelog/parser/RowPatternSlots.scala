// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.parser

import java.util.Locale

import scala.collection.mutable

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{
  UnresolvedAttribute, UnresolvedFunction, UnresolvedStar
}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LocalRelation, LogicalPlan}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.functions.PatternSlot
import org.apache.spark.sql.changelog.functions.PatternSlot._

/** An aggregate function over a set of rows: its first value, its value with a further row, and its result. */
private[parser] final case class Fold(
    value: Attribute,
    zero: Expression,
    update: Expression,
    result: Expression)

/**
 * The slots that conditions and measures of `match_recognize` read in place of rows of variables.
 *
 * @param setNames
 *   the names of variables, and of sets of variables
 */
private[parser] final class RowPatternSlots(source: LogicalPlan, setNames: Seq[String]) {
  import RowPatternReader.{invalid, of, unsupported}

  private val session = castToImpl(SparkSession.active).sessionState
  private val rowType = StructType(source.output.map { column =>
    StructField(column.name, column.dataType, column.nullable)
  })

  /** The slots in use, each as a column during analysis. */
  val columns = mutable.LinkedHashMap.empty[PatternSlot, Attribute]

  /** The row that an aggregate function adds. */
  val any: Attribute = AttributeReference("row", rowType)()

  /** The aggregate functions in use, by the set of their rows. */
  val folds = mutable.LinkedHashMap.empty[(Int, Expression), Fold]

  /** Returns the number of the set of a variable's rows, 0 for an unknown variable. */
  def setOf(name: String): Int = setNames.indexWhere(_.equalsIgnoreCase(name)) + 1

  /** Returns one of the names of `PATTERN` and `SUBSET` as it is written there. */
  def known(name: String, names: Seq[String]): String =
    names.find(_.equalsIgnoreCase(name)).getOrElse {
      throw invalid(name, s"expected one of the variables ${names.mkString(", ")}")
    }

  def slot(slot: PatternSlot): Attribute = columns.getOrElseUpdate(
    slot,
    slot match {
      case RowAt(set, isFirst, steps, shift) =>
        val name = if (set == 0) "any row" else setNames(set - 1)
        val place = if (isFirst) s"FIRST($name, $steps)" else s"LAST($name, $steps)"
        val shown =
          if (shift == 0 && steps == 0 && !isFirst) name else s"$place${"%+d".format(shift)}"
        AttributeReference(shown, rowType)()
      case Folded(fold) => folds.values.toSeq(fold).value
      case MatchNumber => AttributeReference("MATCH_NUMBER", LongType, nullable = false)()
      case Classifier => AttributeReference("CLASSIFIER", StringType)()
    })

  /** A call of a function by its name, in lower case. */
  private object Call {
    def unapply(expression: Expression): Option[(String, Seq[Expression])] = expression match {
      case call: UnresolvedFunction if call.nameParts.size == 1 =>
        Some(call.nameParts.head.toLowerCase(Locale.ROOT) -> call.arguments)
      case AggregateExpression(First(value, false), _, false, None, _) =>
        Some("first" -> Seq(value))
      case AggregateExpression(Last(value, false), _, false, None, _) =>
        Some("last" -> Seq(value))
      case _ => None
    }
  }

  /** Returns a parsed expression, with slots in place of variables and of functions of a match. */
  def slotted(expression: Expression): Expression = expression match {
    case Call("match_number", Nil) => slot(MatchNumber)
    case Call("classifier", Nil) => slot(Classifier)
    case Call("prev" | "next" | "first" | "last", _) => navigated(expression)
    case call: UnresolvedFunction if isAggregate(call) => aggregated(call)
    case call: AggregateExpression => throw unsupported(call.sql, "SUM, AVG, MIN, MAX or COUNT")
    case column: UnresolvedAttribute => fields(column, RowAt(setOf(column), false, 0, 0))
    // Within a lambda function the parser takes every column for a parameter.
    case UnresolvedNamedLambdaVariable(path) if path.size > 1 && setOf(path.head) > 0 =>
      slotted(UnresolvedAttribute(path))
    case other => other.mapChildren(slotted)
  }

  private def setOf(column: UnresolvedAttribute): Int =
    if (column.nameParts.size == 1) 0 else setOf(column.nameParts.head)

  /** Returns the set of which arguments read rows. */
  private def onlySet(arguments: Seq[Expression]): Int = {
    val sets = arguments.flatMap(_.collect {
      case column: UnresolvedAttribute => setOf(column)
      case UnresolvedStar(Some(Seq(name))) => setOf(known(name, setNames))
      case call: Expression if Call.unapply(call).exists(isOfMatch) =>
        throw unsupported(
          s"${call.sql} within a function",
          "a function of columns of one variable")
    })
    sets.distinct match {
      case Seq() => 0
      case Seq(set) => set
      case _ =>
        val texts = arguments.map(_.sql).mkString(", ")
        throw unsupported(s"A function of several variables ($texts)", "columns of one variable")
    }
  }

  private def isOfMatch(call: (String, Seq[Expression])): Boolean =
    Set("match_number", "classifier", "prev", "next", "first", "last").contains(call._1)

  /** Returns `value` with the fields of a slot in place of columns. */
  private def fields(value: Expression, at: RowAt): Expression = {
    val row = slot(at)
    value.transform { case column: UnresolvedAttribute => fieldOf(column, row) }
  }

  private def fieldOf(column: UnresolvedAttribute, row: Attribute): Expression = {
    val path = if (setOf(column) == 0) column.nameParts else column.nameParts.tail
    UnresolvedAttribute(row.name +: path)
  }

  /** Returns an argument over the row that `PREV`, `NEXT`, `FIRST` and `LAST` choose, NULL without such a row. */
  private def navigated(expression: Expression): Expression = {
    def number(arguments: Seq[Expression], default: Int): Int = arguments.drop(1) match {
      case Seq() => default
      case Seq(Literal(number: Int, IntegerType)) if number >= 0 => number
      case _ => throw invalid(expression.sql, "expected a column and a number of rows")
    }
    def logical(value: Expression, shift: Int): (Expression, RowAt) = value match {
      case Call(name @ ("first" | "last"), arguments @ (argument +: _)) =>
        argument -> RowAt(onlySet(Seq(argument)), name == "first", number(arguments, 0), shift)
      case other => other -> RowAt(onlySet(Seq(other)), isFromFirst = false, 0, shift)
    }
    val (argument, at) = expression match {
      case Call("prev", arguments @ (value +: _)) => logical(value, -number(arguments, 1))
      case Call("next", arguments @ (value +: _)) => logical(value, number(arguments, 1))
      case other => logical(other, 0)
    }
    val value = fields(argument, at)
    if (argument.isInstanceOf[UnresolvedAttribute]) value
    else If(IsNull(slot(at)), Literal(null), value)
  }

  private def isAggregate(call: UnresolvedFunction): Boolean = call.nameParts.size == 1 &&
    session.catalog
      .lookupBuiltinOrTempFunction(call.nameParts.head)
      .exists(_.getGroup == "agg_funcs")

  /** Returns the result of an aggregate function over the rows of a variable. */
  private def aggregated(call: UnresolvedFunction): Expression = {
    val set = onlySet(call.arguments)
    if (call.isDistinct || call.filter.nonEmpty) {
      throw unsupported(
        s"${call.sql} with DISTINCT or FILTER",
        "a plain call, or CASE for FILTER")
    }
    val overRow = call.transformUp {
      case column: UnresolvedAttribute => fieldOf(column, any)
      case _: UnresolvedStar => Literal(1)
    }
    val plan = Aggregate(Nil, Seq(Alias(overRow, "value")()), LocalRelation(any))
    val value = of(call.sql)(session.executePlan(plan).analyzed) match {
      case aggregate: Aggregate => aggregate.aggregateExpressions.head
      case _ => throw unsupported(call.sql, "SUM, AVG, MIN, MAX or COUNT")
    }
    value.asInstanceOf[Alias].child.transform { case AggregateExpression(function, _, _, _, _) =>
      folded(set, function)
    }
  }

  private def folded(set: Int, function: Expression): Expression = function match {
    case replaced: RuntimeReplaceableAggregate => folded(set, replaced.replacement)
    case function: DeclarativeAggregate if function.deterministic =>
      val key = set -> function.canonicalized
      val known = folds.getOrElseUpdate(key, fold(function))
      slot(Folded(folds.keys.toSeq.indexOf(key)))
      known.result
    case other => throw unsupported(other.sql, "SUM, AVG, MIN, MAX or COUNT")
  }

  private def fold(function: DeclarativeAggregate): Fold = {
    val buffer = function.aggBufferAttributes
    val fieldNames = buffer.indices.map(at => s"b$at")
    def struct(values: Seq[Expression]) =
      CreateNamedStruct(fieldNames.zip(values).flatMap { case (name, value) =>
        Seq(Literal(name), value)
      })
    val valueType = StructType(fieldNames.zip(buffer).map { case (name, column) =>
      StructField(name, column.dataType)
    })
    val value = AttributeReference(s"${function.sql} ${folds.size}", valueType)()
    val fields = AttributeMap(buffer.zipWithIndex.map { case (column, at) =>
      column -> GetStructField(value, at, Some(fieldNames(at)))
    })
    def overValue(expression: Expression) =
      expression.transformUp { case column: Attribute => fields.getOrElse(column, column) }
    Fold(
      value,
      struct(function.initialValues),
      struct(function.updateExpressions.map(overValue)),
      overValue(function.evaluateExpression))
  }
}
