// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.changelog.checkpoint.CheckpointFiles

/**
 * Writes checkpoints of any streaming query to local disks without starting a process per file.
 *
 * Choose it with
 * `spark.sql.streaming.checkpointFileManagerClass=io.sparkchangelog.LocalCheckpointFileManager`.
 * Files are the same; those on other file systems are written as Spark does.
 *
 * @param path
 *   the folder of the files
 * @param hadoopConf
 *   says which file system a path is on
 */
class LocalCheckpointFileManager(path: Path, hadoopConf: Configuration)
    extends CheckpointFiles(path, hadoopConf)
