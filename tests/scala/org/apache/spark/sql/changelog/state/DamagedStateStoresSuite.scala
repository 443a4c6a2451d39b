// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Files of Spark's own state stores that are no longer what was written, below an aggregate and a join. */
class DamagedStateStoresSuite extends AnyFunSuite with CheckpointDamage {
  import CheckpointDamage._

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.Quick + ("spark.sql.streaming.stateStore.minDeltasForSnapshot" -> "5"))

  /** Snapshots are written, and files no longer needed removed, after each batch. */
  private val InMemory = Map("spark.sql.streaming.stateStore.unloadOnCommit" -> "true")

  private val RocksDb = Variant.RocksDB
  private val ChangesOnly =
    RocksDb + ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled" -> "true")

  private val AttemptsApart =
    RocksDb + ("spark.sql.streaming.stateStore.checkpointFormatVersion" -> "2")

  private val conditions = Set("CHANGELOG_STATE_NOT_READABLE")

  /** What is read as rows are asked for. */
  private val flippedRows =
    Damage("flipped in its rows", bytes => Some(bytes.updated(20, (bytes(20) ^ 1).toByte)))

  for ((name, shape) <- Seq(
      "aggregate" -> CheckpointedQuery.Sums,
      "join" -> CheckpointedQuery.Pairs)) {
    check(
      s"Spark's store in memory, $name",
      Seq(
        Kind("delta", "state/\\d+/0/\\d+\\.delta"),
        Kind("snapshot", "state/\\d+/0/\\d+\\.snapshot")),
      InMemory,
      conditions,
      shape = shape)
    check(
      s"RocksDB, $name",
      Seq(Kind("zip", "state/\\d+/0/\\d+\\.zip"), Kind("SST", "state/\\d+/0/SSTs/.*\\.sst")),
      RocksDb,
      conditions,
      damages :+ flippedRows,
      shape)
    check(
      s"RocksDB with a log of changes, $name",
      Seq(Kind("changes", "state/\\d+/0/\\d+\\.changelog")),
      ChangesOnly,
      conditions,
      shape = shape)
    check(
      s"RocksDB with files of each attempt, $name",
      Seq(
        Kind("zip", "state/\\d+/0/\\d+_.*\\.zip"),
        Kind("commits", "commits/\\d+"),
        Kind("commits of the batch before", "commits/\\d+", 1)),
      AttemptsApart,
      conditions,
      damages.filter(_.name == "missing"),
      shape)
  }
}
