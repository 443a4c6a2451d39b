// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

import org.apache.spark.sql.changelog.compat.RunningStream
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.microbatch.{
  AssignStateInfo,
  PlannedBatch,
  SpreadingSalts,
  StatePartitions
}

/**
 * A query that begins, or begins again, when the first batch of a run is planned.
 *
 * While no batch is done there is nothing to protect, and the query is written down anew.
 */
private[changelog] class RecordedRun(session: SparkSession, batch: PlannedBatch) {
  private val conf = session.sessionState.conf
  private val hadoopConf = session.sessionState.newHadoopConf()
  private val file = new QueryRecordFile(batch.checkpoint, hadoopConf)
  private val recorded = if (batch.batchId == 0) None else Some(file.read())
  private val current = QueryRecord(batch.query, conf)
  private val begun = recorded.fold(current)(current.begunAs)

  /** What the query's sources are, by their numbers. */
  lazy val sources: Map[Int, String] =
    SourceNames.byNumber(batch.query, current.streams.zip(begun.streams).toMap)

  /** What is taken over from an earlier query, if that happens in this batch. */
  lazy val takenOver: Option[TakenOver] =
    if (batch.batchId == 0) None
    else {
      TakenOver
        .file(batch.checkpoint, hadoopConf)
        .find()
        .map(TakenOver.fromJson)
        .filter(_.batch == batch.batchId)
    }

  /** The folder with the rows that the target holds, if it is not to be filled from nothing. */
  def heldRows: Option[String] =
    takenOver.filter(_.hasResult).map(_ => TakenOver.resultIn(batch.checkpoint).toString)

  /** Refuses another query than the recorded one, and goes on with the settings of that. */
  def begin(): Unit = {
    RunningStream(session).foreach(_.findLatestOffsets())
    recorded match {
      case Some(record) =>
        CheckSameQuery(batch.checkpoint.toString, record, current)
        RecordedSettings.use(record.settings, conf)
      case None =>
        conf.setConf(ChangelogConf.STATE_PARTITIONS, Some(StatePartitions(session)))
        conf.setConf(ChangelogConf.SPREADING_SALTS, Some(SpreadingSalts.text(session)))
    }
    // rows that operators without state have shuffled are not shuffled again for those with state
    conf.setConf(SQLConf.SHUFFLE_PARTITIONS, AssignStateInfo.numPartitions(session))
  }

  /** Refuses other operators than the recorded ones, and writes down what the query is from now on. */
  def rewrittenTo(operators: Seq[OperatorRecord]): Unit = {
    val settings = RecordedSettings.valuesIn(conf)
    val next = begun.copy(settings = settings, operators = operators)
    recorded.foreach(CheckSameQuery.operators(batch.checkpoint.toString, _, operators))
    if (!recorded.contains(next)) file.write(next)
  }
}
