// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import scala.util.Using

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.{CommitLog, CommitMetadata}
import org.apache.spark.sql.internal.SQLConf

/** The log of batches that are done. */
private[compat] object CommitLogs {

  /**
   * Opens one.
   *
   * @param like
   *   a log of the form in which this one is read and written; here a session tells the form of all
   */
  def open(session: SparkSession, folder: Path, like: Path): CommitLog = {
    val own = session.cloneSession()
    versionOf(session, like).foreach(
      own.conf.set(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION.key, _))
    new CommitLog(own, folder.toString)
  }

  /** The first line of each entry is `v` and the form. */
  private def versionOf(session: SparkSession, log: Path): Option[String] = {
    val files = log.getFileSystem(session.sessionState.newHadoopConf())
    val entries = if (files.exists(log)) files.listStatus(log).toSeq else Nil
    entries.map(_.getPath).find(_.getName.forall(_.isDigit)).map { entry =>
      Using.resource(files.open(entry))(in => new String(in.readNBytes(2)).drop(1))
    }
  }

  /** An entry that says of other files that they count. */
  def withStateIds(
      done: CommitMetadata,
      ids: Map[Long, Array[Array[String]]]): CommitMetadata =
    done.copy(stateUniqueIds = Some(ids))
}
