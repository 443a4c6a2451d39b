// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer.rewrite

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Attribute, RowOrdering}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.inference.AnnotatedPlan
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.shared.SharedChanges

/**
 * Rewrites all nodes of a query, inputs first, so that operator ids count from the sources up, left
 * to right. A part that is read several times is rewritten where it is computed:
 * {{{
 *   Join                              ChangelogJoin
 *   :- Project                        :- Project
 *   :  +- Aggregate  part 1     =>    :  +- SharedPart part 1
 *   +- Aggregate  part 1              :     +- ChangelogAggregate
 *                                     +- SharedReading part 1
 * }}}
 *
 * @param takesOver
 *   in the batch in which state of an earlier query is taken over, whether a node has its own from there,
 *   all of whose result it is to emit
 * @param watch
 *   in a dry run, notes the rows that nodes send
 */
private[optimizer] class RewriteNodes(
    ids: OperatorIds,
    takesOver: Option[RewrittenNode => Boolean],
    watch: Option[WatchNodes]) {
  private val parts = mutable.Map.empty[Int, SharedPart]

  /** The nodes that have become operators, in the order of their ids. */
  val operators: mutable.ArrayBuffer[RewrittenNode] = mutable.ArrayBuffer.empty

  def apply(node: AnnotatedPlan): LogicalPlan = node.shared match {
    case Some(reading) if reading.computes =>
      val rows = NodeRewrite.select(rewrite(node), node.plan.output, !node.mode.isInsertOnly)
      val part = SharedPart(new SharedChanges(reading.number), placedBy(node, rows), rows)
      parts(reading.number) = part
      part
    case Some(reading) => readAgain(node, parts(reading.number))
    case None => rewrite(node)
  }

  private def rewrite(node: AnnotatedPlan): LogicalPlan = {
    val rewrite = NodeRewrite.forNode(node)
    // what lies below a source is Spark's own
    val inputs = node.plan match {
      case source: FromChangelog => Seq(source.child)
      case _ => rewrite.inputs(node).map(apply)
    }
    val (rewritten, operatorIds) = ids.during(rewrite(marked(node), inputs, ids))
    if (operatorIds.nonEmpty) {
      val last = rewritten.collectFirst { case operator: KeepsState => operator }
      val found = RewrittenNode(node, operatorIds, last.exists(KnownResult(node, _)))
      operators += found
      if (takesOver.exists(_(found))) last.foreach(StoredResult.mark(_))
    }
    watch.fold(rewritten)(_(node, rewritten))
  }

  private def marked(node: AnnotatedPlan): AnnotatedPlan = node.plan match {
    case source: FromChangelog if takesOver.isDefined =>
      node.copy(plan = source.copy(child = SourceRows(source.child)))
    case _ => node
  }

  /** As most readers want them, and as an operator that knows a key of its rows has them already. */
  private def placedBy(node: AnnotatedPlan, rows: LogicalPlan): Seq[Attribute] = {
    val hashed = rows.output.filter(column => RowOrdering.isOrderable(column.dataType))
    node.upsertKeys.sortBy(_.size).find(_.subsetOf(rows.outputSet)) match {
      case Some(key) => hashed.filter(key.contains)
      case None => hashed.filter(node.plan.outputSet.contains)
    }
  }

  private def readAgain(node: AnnotatedPlan, part: SharedPart): SharedReading = {
    val kind = if (node.mode.isInsertOnly) None else Some(RowKind.newAttribute())
    val columns = part.output.zip(node.plan.output ++ kind).map { case (computed, read) =>
      read.withNullability(computed.nullable)
    }
    val placedBy = part.placedBy.map { column =>
      columns(part.output.indexWhere(_.exprId == column.exprId))
    }
    SharedReading(part.changes, placedBy, columns)
  }
}

/**
 * A node that has become operators.
 *
 * @param ids
 *   those of the operators
 * @param givesRows
 *   whether its whole result can be read from what they keep
 */
private[optimizer] final case class RewrittenNode(
    node: AnnotatedPlan,
    ids: Seq[Long],
    givesRows: Boolean)
