// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference.nodes

import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.Join

import org.apache.spark.sql.changelog.UpdateKind.OnlyUpdateAfter

/**
 * Joins of a changelog with something static, done as Spark joins a stream with a table: the static
 * side is read again in each batch, each change meets its rows, and no state is kept.
 *
 * Such a join can only look up. A static side whose rows must come out by themselves (padded, or
 * depending on what the changelog lacks) needs a memory of what came before, and is joined like a
 * changelog of rows that all come in the first batch.
 */
private[changelog] object StaticSide {

  /** The side that changes. */
  private[inference] def other(left: InferredNode, right: InferredNode): InferredNode =
    if (left.isStatic) right else left

  /** Whether one side of the join is static, and no row of it comes out without a changing one. */
  def looksUp(join: Join): Boolean = {
    val (left, right) =
      (StaticInference.isStatic(join.left), StaticInference.isStatic(join.right))
    val isKept = join.joinType match {
      case _: InnerLike => false
      case RightOuter => right
      case FullOuter => true
      case _ => left
    }
    (left || right) && !isKept
  }

  /**
   * Like a filter: a row whose new version finds other partners leaves pairs behind, unless what it
   * finds them by is in its key, or every row comes out exactly once anyway.
   */
  private[inference] def objection(
      node: InferredNode,
      join: Join,
      key: AttributeSet): Option[String] = {
    val side = changing(node)
    changingKey(node, key) match {
      case Some(sideKey) =>
        val read = join.condition.map(_.references).getOrElse(AttributeSet.empty)
        val looksUpByKey = read.intersect(side.plan.outputSet).subsetOf(sideKey)
        val comesOutOnce = key == sideKey && (join.joinType match {
          case LeftOuter | RightOuter | LeftSingle | _: ExistenceJoin => true
          case _ => false
        })
        if (looksUpByKey || comesOutOnce) side.objection(sideKey)
        else Some(s"${node.name} must see the old row to know which pairs it had")
      case None => Some(s"${node.name} has other keys than its changing input")
    }
  }

  private[inference] def decide(node: InferredNode, demand: Demand): Decision = {
    val asked = demand.kind match {
      case OnlyUpdateAfter => demand.copy(key = demand.key.flatMap(changingKey(node, _)))
      case _ => demand
    }
    Decision(
      node.children.map(side => if (side.isStatic) Demand.nothing else asked),
      strategy = Some("look up the static side"),
      reasons = Seq("the static side is read again in each batch; its changes take nothing back"))
  }

  private def changing(node: InferredNode): InferredNode =
    other(node.children(0), node.children(1))

  /** The key of the changing side within a key of the join. */
  private def changingKey(node: InferredNode, key: AttributeSet): Option[AttributeSet] =
    changing(node).upsertKeys.find(_ == key.intersect(changing(node).plan.outputSet))
}
