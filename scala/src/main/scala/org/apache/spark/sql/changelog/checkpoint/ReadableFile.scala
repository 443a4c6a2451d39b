// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.checkpoint

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.json4s.jackson.JsonMethods.parse

import org.apache.spark.sql.changelog.errors.{ChangelogRuntimeException, CheckpointFileErrors}

/** Says which file it was that could not be read, and what to do, whatever reading it throws. */
private[changelog] object ReadableFile {
  def apply[T](file: Path)(read: Path => T): T =
    try read(file)
    catch {
      case error: ChangelogRuntimeException => throw error
      case NonFatal(e) =>
        throw CheckpointFileErrors.fileDamaged(
          file.toString,
          s"reading it fails with ${e.toString.takeWhile(_ != '\n')}",
          cause = e)
    }

  /** Fails if a text begins as JSON does and doesn't end so. Sources may write offsets otherwise. */
  def checkJson(text: String): Unit =
    if (text.startsWith("{") || text.startsWith("[")) {
      parse(text)
      ()
    }
}
