// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.jdk.CollectionConverters._

import org.scalatest.Assertions

import org.apache.spark.SparkThrowable

/** Checks errors by condition and parameters rather than by their text. */
trait ErrorChecks extends Assertions {

  /** Our error behind whatever Spark wraps it in. */
  protected def changelogError(body: => Any): Throwable with SparkThrowable = {
    val error = intercept[Throwable](body)
    Iterator
      .iterate(error)(_.getCause)
      .takeWhile(_ != null)
      .collectFirst {
        case ours: SparkThrowable if String.valueOf(ours.getCondition).startsWith("CHANGELOG") =>
          ours
      }
      .getOrElse(throw new AssertionError(s"not an error of ours: $error", error))
  }

  protected def checkError(condition: String, parameters: (String, String)*)(
      body: => Any): Throwable with SparkThrowable = {
    val error = changelogError(body)
    assert(error.getCondition == condition, error)
    val actual = error.getMessageParameters.asScala
    parameters.foreach { case (name, value) =>
      assert(actual.get(name).contains(value), s"as <$name> of $error")
    }
    error
  }
}
