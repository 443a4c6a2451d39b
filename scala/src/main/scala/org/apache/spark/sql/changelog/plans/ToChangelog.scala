// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import java.util.Locale
import java.util.concurrent.TimeUnit.MILLISECONDS

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.util.IntervalUtils
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.OutputMode
import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * Emits the changes of a query's result: the rows inserted, updated or deleted in each batch.
 *
 * Catalyst sees this node as a stream whenever a streaming source is below, although the
 * [[FromChangelog]] in between is a table.
 *
 * @param mode
 *   the output mode of the reader
 * @param key
 *   columns of `child` by which the reader replaces rows; empty to use a key of the query
 * @param streaming
 *   whether the changes are emitted in batches; if not, the result is one batch of inserts
 * @param changeType
 *   the column with the change type, `_change_type` by default
 * @param explainOnly
 *   whether the query is explained and not executed
 * @param watched
 *   in a dry run, the record of the rows of its nodes
 * @param emission
 *   when changes are emitted. [[Emission.OnClose]] without corrections is the mode `append`
 * @param order
 *   in mode append, the order of the rows, by an event time first; empty for any order
 */
case class ToChangelog(
    mode: OutputMode,
    key: Seq[Attribute],
    streaming: Boolean,
    changeType: Attribute,
    child: LogicalPlan,
    explainOnly: Boolean = false,
    watched: Option[WatchedChanges] = None,
    emission: Emission = Emission.Changes,
    order: Seq[SortOrder] = Nil)
    extends UnaryNode
    with StartedOnly {

  override protected def notStarted: AnalysisException = analysis("CHANGELOG_CHANGES_NOT_STARTED")

  /**
   * Returns the columns of the result, nullable in a stream. A row stored before a column was
   * added is retracted without a value of the column.
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
 * Declares a key of its input: the subject of a version and the start of the version's validity.
 *
 * @param key
 *   columns of `child` that identify a row
 */
case class KeyedVersions(key: Seq[Attribute], child: LogicalPlan) extends UnaryNode {

  override def output: Seq[Attribute] = child.output

  override protected def withNewChildInternal(newChild: LogicalPlan): KeyedVersions =
    copy(child = newChild)
}

/**
 * The versions of each row of `child`, valid from the batch that brought them until the batch that replaced or deleted
 * them. A function of the changes of `child`, not of its rows.
 *
 * @param key
 *   columns of `child` that identify a row; empty to use a key of the query
 * @param validity
 *   the start and the end of a version's validity, and whether the version is current
 */
case class CommitHistory(key: Seq[Attribute], validity: Seq[Attribute], child: LogicalPlan)
    extends UnaryNode {

  override def output: Seq[Attribute] = child.output ++ validity

  override def producedAttributes: AttributeSet = AttributeSet(validity)

  /** A version is stored with all columns. */
  @transient override lazy val references: AttributeSet = child.outputSet

  override protected def withNewChildInternal(newChild: LogicalPlan): CommitHistory =
    copy(child = newChild)
}

/**
 * A node that needs `start()` if rows arrive in batches.
 *
 * Spark rejects a plan at the lowest stream, with an advice for Spark's own queries. The correct
 * advice depends on the nodes above the stream, so the nodes replace the error.
 */
private[plans] trait StartedOnly extends LogicalPlan {

  /** Whether rows arrive in batches. */
  def streaming: Boolean

  /** Returns the error with the advice for this node. */
  protected def notStarted: AnalysisException

  override def foreachUp(f: LogicalPlan => Unit): Unit =
    try super.foreachUp(f)
    catch {
      case refused: AnalysisException if streaming && StartedOnly.isNotStarted(refused) =>
        throw notStarted
    }
}

private object StartedOnly {

  /**
   * Whether the error is Spark's error of a stream, or the error of a lower node of this project.
   * The topmost node decides.
   */
  private def isNotStarted(refused: AnalysisException): Boolean =
    refused.getMessage.contains("must be executed with writeStream.start()") ||
      refused.getCondition == "CHANGELOG_CHANGES_NOT_ASKED_FOR"
}

/** Emission: when a query emits the changes of its result. */
sealed trait Emission

object Emission {

  /** In each batch. */
  case object Changes extends Emission

  /** The net changes since the last emission, at most once per `interval`, in ms. */
  final case class Every(interval: Long) extends Emission

  /**
   * Once the watermark has passed the rows. For `corrections` ms more, changes of emitted rows are emitted too.
   */
  final case class OnClose(corrections: Long) extends Emission

  val Grammar: String =
    "one of 'changes', 'every 10 seconds', 'on close' and 'on close, then corrections for 1 hour'"

  private val EveryText = "every (.+)".r
  private val CorrectedText = "on close, ?then corrections for (.+)".r

  /** Returns the emission written as in [[Grammar]]; None for other texts. */
  def parse(text: String): Option[Emission] =
    text.trim.toLowerCase(Locale.ROOT).replaceAll("\\s+", " ") match {
      case "changes" => Some(Changes)
      case "on close" => Some(OnClose(corrections = 0))
      case EveryText(time) => inMs(time).map(Every(_))
      case CorrectedText(time) => inMs(time).map(OnClose(_))
      case _ => None
    }

  /**
   * Returns a positive length of time in ms. Accepts the formats of the session's configuration and of watermarks.
   */
  def inMs(text: String): Option[Long] = {
    val trimmed = text.trim.toLowerCase(Locale.ROOT)
    Try(JavaUtils.timeStringAsMs(trimmed)).toOption
      .orElse {
        Try(IntervalUtils.stringToInterval(UTF8String.fromString(trimmed))).toOption
          .filter(_.months == 0)
          .map(IntervalUtils.getDuration(_, MILLISECONDS))
      }
      .filter(_ > 0)
  }
}
