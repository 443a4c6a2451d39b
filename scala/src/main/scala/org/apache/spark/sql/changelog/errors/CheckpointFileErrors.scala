// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/** The errors of checkpoints whose files are not as they were written. */
object CheckpointFileErrors {

  /** @param advice what to do if nobody has damaged the file; empty, or a sentence */
  def fileDamaged(
      file: String,
      fault: String,
      advice: String = "",
      cause: Throwable = null): ChangelogRuntimeException = {
    val error = runtime(
      "CHANGELOG_CHECKPOINT_FILE_DAMAGED",
      Map(
        "file" -> file,
        "fault" -> fault,
        "advice" -> (if (advice.isEmpty) "" else s" $advice")))
    if (cause != null) error.initCause(cause)
    error
  }

  def fileMissing(file: String, version: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_CHECKPOINT_FILE_MISSING",
      Map("file" -> file, "version" -> version.toString))

  def formatNotSupported(version: Int): ChangelogRuntimeException =
    runtime("CHANGELOG_CHECKPOINT_FORMAT_NOT_SUPPORTED", Map("version" -> version.toString))
}
