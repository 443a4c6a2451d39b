// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.errors.ChangelogErrors

/**
 * Emits the changes of a query's result: the rows that came, changed or went in each batch.
 *
 * To Catalyst this node is a stream whenever a streaming source lies below it, although
 * [[FromChangelog]] in between calls itself a table.
 *
 * @param mode
 *   what the reader of the changes can take
 * @param key
 *   columns of `child` by which the reader replaces rows; empty to use a key of the query
 * @param streaming
 *   whether the changes come batch by batch; if not, the result is one batch of inserts
 * @param changeType
 *   the column that tells the change type, `_change_type` if the query doesn't name it otherwise
 * @param explainOnly
 *   whether the query is to be explained and not executed
 * @param watched
 *   in a dry run, what the rows of its nodes are noted in
 */
case class ToChangelog(
    mode: OutputMode,
    key: Seq[Attribute],
    streaming: Boolean,
    changeType: Attribute,
    child: LogicalPlan,
    explainOnly: Boolean = false,
    watched: Option[WatchedChanges] = None)
    extends UnaryNode
    with StartedOnly {

  override protected def notStarted: AnalysisException = ChangelogErrors.changesNotStarted()

  /**
   * The columns of the result. A row that a target has held since before it got a column is taken back
   * without a value of it.
   */
  def columns: Seq[Attribute] =
    if (streaming) child.output.map(_.withNullability(true)) else child.output

  override def output: Seq[Attribute] = columns :+ changeType

  override def producedAttributes: AttributeSet = AttributeSet(changeType)

  override def isStreaming: Boolean = streaming

  override def maxRows: Option[Long] = None

  override def simpleString(maxFields: Int): String = {
    val keyText = if (key.isEmpty) "" else key.map(_.name).mkString(" key=(", ", ", ")")
    s"ToChangelog mode=$mode$keyText"
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): ToChangelog =
    copy(child = newChild)
}

/**
 * A node that can't be run at once while rows come to it batch by batch.
 *
 * Spark refuses a plan at the first stream that it meets from below, and says how a query of its own is
 * started. What is missing here depends on the nodes above that stream, so these say it instead.
 */
private[plans] trait StartedOnly extends LogicalPlan {

  /** Whether rows come batch by batch. */
  def streaming: Boolean

  /** What is missing to run the plan. */
  protected def notStarted: AnalysisException

  override def foreachUp(f: LogicalPlan => Unit): Unit =
    try super.foreachUp(f)
    catch {
      case refused: AnalysisException if streaming && StartedOnly.isMeant(refused) =>
        throw notStarted
    }
}

private object StartedOnly {

  /** What Spark says of a stream, or a node below of its own: the topmost decides. */
  private def isMeant(refused: AnalysisException): Boolean =
    refused.getMessage.contains("must be executed with writeStream.start()") ||
      refused.getCondition == "CHANGELOG_CHANGES_NOT_ASKED_FOR"
}
