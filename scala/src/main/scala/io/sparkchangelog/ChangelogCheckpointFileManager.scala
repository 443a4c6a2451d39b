// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.checkpoint.CheckpointFiles

/**
 * ChangelogCheckpointFileManager: writes checkpoints of any streaming query to local disks without a process per file,
 * and to S3 without a rename. If two drivers create one file, a single driver succeeds.
 *
 * To use the manager, set
 * `spark.sql.streaming.checkpointFileManagerClass=io.sparkchangelog.ChangelogCheckpointFileManager`. The files have the
 * names and content of Spark's files. On other file systems, Spark's manager writes the files.
 *
 * @param path
 *   the folder of the files
 * @param hadoopConf
 *   the settings to find the file system of a path
 */
class ChangelogCheckpointFileManager(path: Path, hadoopConf: Configuration)
    extends CheckpointFiles(path, hadoopConf)
