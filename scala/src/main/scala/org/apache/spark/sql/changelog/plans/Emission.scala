// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import java.util.Locale
import java.util.concurrent.TimeUnit.MILLISECONDS

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.catalyst.util.IntervalUtils
import org.apache.spark.unsafe.types.UTF8String

/** Emission: when a query emits the changes of its result. */
sealed trait Emission

object Emission {

  /** In each batch. */
  case object Changes extends Emission

  /** The net changes since the last emission, at most once per `interval`, in ms. */
  final case class Every(interval: Long) extends Emission

  /**
   * Once the watermark has passed the rows. For `corrections` ms more, changes of emitted rows are
   * emitted too.
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
   * Returns a positive length of time in ms. Accepts the formats of the session's configuration and
   * of watermarks.
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
