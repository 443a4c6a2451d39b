// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime

/** The errors of damaged or missing checkpoint files. */
object CheckpointFileErrors {

  /** @param advice what to do with an undamaged file; empty, or a sentence */
  def fileDamaged(
      file: String,
      fault: String,
      advice: String = "",
      cause: Throwable = null): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_CHECKPOINT_FILE_DAMAGED",
      Map(
        "file" -> file,
        "fault" -> fault,
        "advice" -> (if (advice.isEmpty) "" else s" $advice")),
      cause)

  def fileMissing(file: String, version: Long): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_CHECKPOINT_FILE_MISSING",
      Map("file" -> file, "version" -> version.toString))

  /** @param evidence the evidence that the file existed, as a sentence */
  def logIncomplete(file: String, evidence: String): ChangelogRuntimeException =
    runtime("CHANGELOG_CHECKPOINT_LOG_INCOMPLETE", Map("file" -> file, "evidence" -> evidence))

  /**
   * @param folder
   *   the folder of the partition's state
   * @param files
   *   the existing files of the version
   */
  def stateNotReadable(
      operator: Long,
      folder: String,
      version: Long,
      files: Seq[String],
      cause: Throwable): ChangelogRuntimeException =
    runtime(
      "CHANGELOG_STATE_NOT_READABLE",
      Map(
        "id" -> operator.toString,
        "folder" -> folder,
        "version" -> version.toString,
        "files" -> (if (files.isEmpty) "none" else files.mkString(", ")),
        "cause" -> causes(cause)
          .map(_.toString.takeWhile(_ != '\n').trim)
          .distinct
          .mkString("; ")),
      cause)

  /** Returns an error and its causes. Often only one of these names a file. */
  def causes(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(10).toSeq

  def formatNotSupported(version: Int): ChangelogRuntimeException =
    runtime("CHANGELOG_CHECKPOINT_FORMAT_NOT_SUPPORTED", Map("version" -> version.toString))
}
