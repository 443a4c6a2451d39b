// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.MaxBy
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BooleanType, StringType}
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.inference.{AnnotatedPlan, PartReading}
import org.apache.spark.sql.changelog.plans.{Emission, FromChangelog, SkewedSide, ToChangelog}
import org.apache.spark.sql.changelog.{OutputMode, UpdateKind}

/**
 * Finds equal stateful parts of the queries of a plan, so that each is computed and stored once.
 *
 * Two parts are equal if they read equal sources in an equal way, and their consumers have equal
 * demands. The decision must not depend on a batch's input. A part that reads a static table is
 * therefore never shared: Spark may plan the table differently in the next batch.
 */
private[optimizer] object ShareEqualParts {

  /** @param roots the queries of a plan */
  def apply(roots: Seq[AnnotatedPlan]): Seq[AnnotatedPlan] =
    if (!SQLConf.get.getConf(ChangelogConf.SHARE_EQUAL_PARTS_ENABLED)) roots
    else {
      val readers = new Readers
      roots.foreach(root => root.children.foreach(readers.visit(_, Reader(root))))
      val readings = readers.readings
      if (readings.isEmpty) roots else roots.map(mark(_, readings))
    }

  private type Readings = Seq[(AnnotatedPlan, PartReading)]

  private def mark(node: AnnotatedPlan, readings: Readings): AnnotatedPlan = node.copy(
    children = node.children.map(mark(_, readings)),
    shared = readings.collectFirst { case (reader, reading) if reader eq node => reading })

  /** The properties that must be equal for two parts. */
  private case class PartKey(
      reader: Reader,
      plan: LogicalPlan,
      required: UpdateKind,
      requiredKey: Option[Seq[Boolean]],
      hints: Seq[Any])

  /** The properties of a query that decide how its parts emit their changes. */
  private case class Reader(isAppend: Boolean, emission: Emission)

  private object Reader {
    def apply(root: AnnotatedPlan): Reader = {
      val reader = root.plan.asInstanceOf[ToChangelog]
      Reader(reader.mode == OutputMode.Append, reader.emission)
    }
  }

  /** Walks the plan like the rewrite: of nodes rewritten together, only the lowest is visited. */
  private class Readers {
    private val places = mutable.LinkedHashMap.empty[PartKey, mutable.Buffer[AnnotatedPlan]]

    def visit(node: AnnotatedPlan, reader: Reader): Unit =
      if (!node.plan.isInstanceOf[FromChangelog] || node.state.nonEmpty) {
        val key = if (mayBeShared(node)) Some(keyOf(node, reader)) else None
        key.flatMap(places.get) match {
          // The first reading computes the nodes below.
          case Some(others) => others += node
          case None =>
            key.foreach(places(_) = mutable.Buffer(node))
            if (!node.plan.isInstanceOf[FromChangelog])
              NodeRewrite.forNode(node).inputs(node).foreach(visit(_, reader))
        }
      }

    def readings: Readings = {
      val shared = places.values.filter(_.size > 1).toSeq
      shared.zipWithIndex.flatMap { case (nodes, index) =>
        nodes.zipWithIndex.map { case (node, place) =>
          node -> PartReading(index + 1, nodes.size, computes = place == 0)
        }
      }
    }
  }

  private def mayBeShared(node: AnnotatedPlan): Boolean =
    keepsState(node) && node.plan.deterministic && readsStreamsOnly(node.plan)

  private def keepsState(node: AnnotatedPlan): Boolean =
    node.state.nonEmpty || node.children.exists(keepsState)

  private def readsStreamsOnly(plan: LogicalPlan): Boolean = plan match {
    case source: FromChangelog => source.number > 0
    case _: LocalRelation | _: OneRowRelation | _: Range => true
    case _: LeafNode => false
    case _ => plan.children.forall(readsStreamsOnly)
  }

  private def keyOf(node: AnnotatedPlan, reader: Reader): PartKey = PartKey(
    reader,
    node.plan.canonicalized,
    node.required,
    node.requiredKey.map(key => node.plan.output.map(key.contains)),
    hints(node.plan))

  /**
   * Returns the hint of each node. Hints do not show in the canonical form, so they are compared
   * separately. Plans below sources are not compared.
   */
  private def hints(plan: LogicalPlan): Seq[Any] =
    SkewedSide.of(plan).map(_.places(plan)) +: (plan match {
      case _: FromChangelog => Nil
      case _ => plan.children.flatMap(hints)
    })
}

/**
 * Completes the newest row of each key with values missing from its change. Missing values come
 * from the newest change that sent them, as in the state of `ChangelogNormalize`.
 *
 * @param unavailable
 *   the column with the names of missing columns
 * @param order
 *   the order of changes of one key
 */
private[rewrite] class StoredValues(
    source: FromChangelog,
    unavailable: Attribute,
    order: Expression) {

  private val newestSent: Map[ExprId, Alias] = {
    val key = AttributeSet(source.key)
    source.output
      .filterNot(key.contains)
      .map { column =>
        val sent = MaxBy(CreateStruct(Seq(column)), order)
          .toAggregateExpression(isDistinct = false, Some(Not(isMissing(column, unavailable))))
        column.exprId -> Alias(sent, s"_sent_${column.name}")()
      }
      .toMap
  }

  def aggregates: Seq[NamedExpression] =
    source.output.flatMap(column => newestSent.get(column.exprId))

  /**
   * Returns the value of a column: `sent` by the newest change, else by the newest change that
   * sent the column.
   */
  def complete(column: Attribute, sent: Expression, newest: Alias): Expression =
    newestSent.get(column.exprId).fold(sent) { stored =>
      val missing =
        isMissing(column, GetStructField(newest.toAttribute, source.output.size + 1))
      val key = ToPrettyString(
        CreateStruct(source.key.map(k => GetStructField(newest.toAttribute, indexOf(k)))),
        Some("UTC"))
      val name = Literal(UTF8String.fromString(column.name), StringType)
      val fails =
        StaticInvoke(StoredValues.getClass, BooleanType, "fail", Seq(key, name))
      val earlier = If(
        And(IsNull(stored.toAttribute), fails),
        Literal(null, column.dataType),
        GetStructField(stored.toAttribute, 0))
      If(missing, earlier, sent)
    }

  private def indexOf(column: Attribute): Int =
    source.output.indexWhere(_.exprId == column.exprId)

  private def isMissing(column: Attribute, names: Expression): Expression = {
    val name = Literal(UTF8String.fromString(column.name), StringType)
    Coalesce(Seq(ArrayContains(names, name), Literal(false)))
  }
}

private[changelog] object StoredValues {

  /** Called from generated code. */
  def fail(key: UTF8String, column: UTF8String): java.lang.Boolean =
    throw runtime("CHANGELOG_VALUE_UNAVAILABLE", "key" -> key, "column" -> column)
}
