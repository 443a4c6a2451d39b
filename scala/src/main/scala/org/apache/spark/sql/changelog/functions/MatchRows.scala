// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import java.util.BitSet

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/**
 * MatchRows: the matches of a row pattern among the rows of one partition, each match with its measures.
 *
 * @param rows
 *   the rows of the partition, in any order
 * @param functions
 *   the measures, followed by the conditions and folds, with positions in `pattern`. The parameters of a function are
 *   the slots in `pattern.parameters`
 */
case class MatchRows(rows: Expression, functions: Seq[Expression], pattern: RowPattern)
    extends HigherOrderFunction
    with CodegenFallback {

  override def children: Seq[Expression] = rows +: functions

  override def arguments: Seq[Expression] = Seq(rows)

  override def argumentTypes: Seq[AbstractDataType] = Seq(ArrayType)

  override def functionTypes: Seq[AbstractDataType] = functions.map(_ => AnyDataType)

  /** The variables of the functions are bound from the beginning. */
  override def bindInternal(
      bind: (Expression, Seq[(DataType, Boolean)]) => LambdaFunction): HigherOrderFunction = this

  override def dataType: DataType = ArrayType(
    StructType(pattern.measures.zip(functions).map { case (name, measure) =>
      StructField(name, measure.dataType)
    }),
    containsNull = false)

  override def prettyName: String = "match_rows"

  @transient private lazy val rowType =
    rows.dataType.asInstanceOf[ArrayType].elementType.asInstanceOf[StructType]

  /** Ties are ordered by the columns, ascending, and then by their bytes. */
  @transient private lazy val order: Ordering[InternalRow] = {
    val columns = rowType.zipWithIndex.collect {
      case (field, at) if RowOrdering.isOrderable(field.dataType) =>
        SortOrder(BoundReference(at, field.dataType, nullable = true), Ascending)
    }
    val bytes = UnsafeProjection.create(rowType)
    new InterpretedOrdering(pattern.order ++ columns).orElse { (left, right) =>
      val first = bytes(left).copy().getBytes
      ByteArray.compareBinary(first, bytes(right).getBytes)
    }
  }

  override def eval(input: InternalRow): Any = {
    val data = rows.eval(input).asInstanceOf[ArrayData]
    val sorted = Array.tabulate(data.numElements())(data.getStruct(_, rowType.size))
    java.util.Arrays.sort(sorted, order)
    val variables = functions.map {
      case LambdaFunction(_, variables, _) =>
        variables.collect { case v: NamedLambdaVariable => v }.toArray
      case _ => Array.empty[NamedLambdaVariable]
    }
    val matcher = new RowMatcher(pattern, functionsForEval.toArray, variables.toArray, sorted)
    new GenericArrayData(matcher.matches().toArray[Any])
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): MatchRows =
    copy(rows = newChildren.head, functions = newChildren.tail)
}

/**
 * A row pattern. Numbers of functions are positions in [[MatchRows]]. Sets of rows are numbered: set 0 has each row of
 * a match, set `i + 1` the rows of variable `i`, and further sets the rows of several variables.
 *
 * @param measures
 *   the names of the measures
 * @param within
 *   the condition of each row of a match, for every variable
 * @param parameters
 *   by function, the slots of the parameters
 * @param order
 *   the order of rows
 */
final case class RowPattern(
    steps: Seq[PatternStep],
    variables: Seq[PatternVariable],
    measures: Seq[String],
    within: Option[Int],
    folds: Seq[PatternFold],
    parameters: Seq[Seq[PatternSlot]],
    skip: AfterMatch,
    order: Seq[SortOrder])

/**
 * @param condition
 *   the function with the result true for rows of the variable; without a condition, every row matches
 * @param sets
 *   the sets with the rows of the variable
 */
final case class PatternVariable(name: String, condition: Option[Int], sets: Seq[Int])

/** An aggregate over the rows of a set: the function of its first value, and the function that adds a row. */
final case class PatternFold(set: Int, zero: Int, update: Int)

/** A step of matching. Distances count from the following step. */
sealed trait PatternStep

object PatternStep {

  /** Takes the next row as a row of a variable. */
  final case class TakeRow(variable: Int) extends PatternStep

  /** Tries to match from the first step, and after a failure from the second step. */
  final case class Fork(first: Int, second: Int) extends PatternStep

  final case class GoTo(distance: Int) extends PatternStep

  /** Requires the begin or end of the partition. */
  final case class AtEdge(isEnd: Boolean) extends PatternStep
}

/** A value of a partial match. */
sealed trait PatternSlot

object PatternSlot {

  /**
   * A row of the partition, or NULL.
   *
   * @param steps
   *   the number of rows of the set between the row and the set's first or last row
   * @param shift
   *   the distance in the partition from the row
   */
  final case class RowAt(set: Int, isFromFirst: Boolean, steps: Int, shift: Int)
      extends PatternSlot

  final case class Folded(fold: Int) extends PatternSlot

  case object MatchNumber extends PatternSlot

  case object Classifier extends PatternSlot
}

/** The row with which the search for the next match begins. */
sealed trait AfterMatch

object AfterMatch {
  case object PastLastRow extends AfterMatch
  case object NextRow extends AfterMatch
  final case class ToRow(set: Int, isFirst: Boolean, variable: String) extends AfterMatch
}

/**
 * Finds the matches among the rows of a partition, by backtracking in the order of preference.
 *
 * After equal taken rows, a step has an equal outcome, so no step is tried twice. If the conditions depend on the
 * tested row and the neighbors of the row only, the outcome depends on the position alone, and the time is bounded by
 * the number of steps and rows.
 */
private class RowMatcher(
    pattern: RowPattern,
    functions: Array[Expression],
    variables: Array[Array[NamedLambdaVariable]],
    rows: Array[InternalRow]) {
  import PatternSlot._
  import PatternStep._

  private val steps = pattern.steps.toArray
  private val slots = pattern.parameters.map(_.toArray).toArray
  private val conditions =
    pattern.variables.map(_.condition ++ pattern.within).map(_.toArray).toArray
  private val setsOf = pattern.variables.map(_.sets.toArray).toArray

  /** The numbers of tried steps at a row. */
  private val tried = new BitSet
  private val isByPosition = pattern.variables.forall { variable =>
    variable.condition.forall { condition =>
      slots(condition).forall {
        case RowAt(set, false, 0, _) => variable.sets.contains(set)
        case _ => false
      }
    }
  }
  private val most = math.max(1_000_000L, rows.length * 100_000L)
  private var numTried = 0L

  // the partial match
  private var start = 0
  private var length = 0
  private var number = 0L
  private val taken = new Array[Int](rows.length)
  private val sets = Array.fill(setsOf.iterator.flatten.max + 1)(mutable.ArrayBuffer.empty[Int])
  private val folded =
    Array.fill(pattern.folds.size)(mutable.ArrayBuffer.empty[Any])

  /** The steps to try next, each with the number of rows taken before. */
  private val waiting = mutable.Stack.empty[(Int, Int)]

  /** Returns the measures of each match. */
  def matches(): Seq[InternalRow] = {
    if (rows.length.toLong * (steps.length + 1) > Int.MaxValue) throw tooLong()
    val found = mutable.ArrayBuffer.empty[InternalRow]
    while (start < rows.length) {
      number = found.size + 1
      if (isMatch()) {
        found += new GenericInternalRow(pattern.measures.indices.map(call(_)).toArray[Any])
        tried.clear()
        start = next()
      } else {
        if (!isByPosition || pattern.within.nonEmpty) tried.clear()
        start += 1
      }
      release(0)
    }
    found.toSeq
  }

  /** Returns the position at which the search goes on after a match. */
  private def next(): Int = pattern.skip match {
    case _ if length == 0 => start + 1
    case AfterMatch.PastLastRow => start + length
    case AfterMatch.NextRow => start + 1
    case AfterMatch.ToRow(set, isFirst, variable) =>
      val target = if (isFirst) sets(set).headOption else sets(set).lastOption
      target.filter(_ > start).getOrElse {
        throw runtime(
          "CHANGELOG_ROW_PATTERN_SKIP",
          "variable" -> variable,
          "fault" -> target.fold("has no row in a match")(_ => "is the first row of a match"))
      }
  }

  private def isMatch(): Boolean = {
    waiting.clear()
    waiting.push((0, 0))
    var isFound = false
    while (!isFound && waiting.nonEmpty) {
      val (from, numTaken) = waiting.pop()
      release(numTaken)
      isFound = reachesEnd(from)
    }
    isFound
  }

  /** Follows the steps until one fails, or until the end of the pattern. */
  private def reachesEnd(from: Int): Boolean = {
    var at = from
    while (at >= 0 && at < steps.length) {
      if (!isNew(at)) at = -1
      else
        steps(at) match {
          case TakeRow(variable) => at = if (takes(variable)) at + 1 else -1
          case Fork(first, second) =>
            waiting.push((at + 1 + second, length))
            at += 1 + first
          case GoTo(distance) => at += 1 + distance
          case AtEdge(isEnd) =>
            at = if (start + length == (if (isEnd) rows.length else 0)) at + 1 else -1
        }
    }
    at >= 0
  }

  private def isNew(step: Int): Boolean = {
    numTried += 1
    if (numTried > most) throw tooLong()
    val key = (start + length) * steps.length + step
    val isNew = !tried.get(key)
    tried.set(key)
    isNew
  }

  private def tooLong() =
    runtime("CHANGELOG_ROW_PATTERN_TOO_LONG", "rows" -> rows.length, "steps" -> most)

  /** Takes the next row as a row of a variable, if the conditions hold with it. */
  private def takes(variable: Int): Boolean = start + length < rows.length && {
    taken(length) = variable
    setsOf(variable).foreach(sets(_) += start + length)
    length += 1
    val holds = conditions(variable).forall(call(_) == true)
    if (!holds) release(length - 1)
    else if (!isByPosition) {
      val first = (start + length) * steps.length
      tried.clear(first, first + steps.length)
    }
    holds
  }

  /** Gives the last rows back, down to a number of rows. */
  private def release(numTaken: Int): Unit = if (numTaken < length) {
    while (numTaken < length) {
      length -= 1
      setsOf(taken(length)).foreach(sets(_).dropRightInPlace(1))
    }
    pattern.folds.indices.foreach { fold =>
      folded(fold).takeInPlace(sets(pattern.folds(fold).set).size + 1)
    }
  }

  private def call(function: Int): Any = call(function, slots(function).map(valueOf))

  private def call(function: Int, arguments: Array[Any]): Any = {
    val parameters = variables(function)
    parameters.indices.foreach(at => parameters(at).value.set(arguments(at)))
    functions(function).eval(InternalRow.empty)
  }

  private def valueOf(slot: PatternSlot): Any = slot match {
    case RowAt(set, isFromFirst, steps, shift) =>
      val positions = sets(set)
      val at = if (isFromFirst) steps else positions.size - 1 - steps
      if (at < 0 || at >= positions.size) null
      else rows.lift(positions(at) + shift).orNull
    case Folded(number) =>
      val fold = pattern.folds(number)
      val values = folded(number)
      if (values.isEmpty) values += call(fold.zero, Array.empty[Any])
      while (values.size <= sets(fold.set).size) {
        val row = rows(sets(fold.set)(values.size - 1))
        values += call(fold.update, Array[Any](values.last, row))
      }
      values.last
    case MatchNumber => number
    case Classifier =>
      if (length == 0) null else UTF8String.fromString(pattern.variables(taken(length - 1)).name)
  }
}
