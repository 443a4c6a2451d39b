// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.connector.read.streaming.{Offset => AnyOffset}
import org.apache.spark.sql.execution.streaming.Offset

import org.apache.spark.sql.changelog.sources.tables.TableVersion

/**
 * The moment of a snapshot, as the one offset of its stream.
 *
 * @param copy
 *   what its copy is called, if one was made
 * @param tables
 *   the versions of the tables it reads, if none was
 */
private[snapshots] final case class SnapshotMoment(
    copy: Option[String],
    tables: Seq[TableVersion])
    extends Offset {
  override val json: String =
    JsonMethods.compact(("copy" -> copy) ~ ("tables" -> tables.map(_.json)))
}

private[snapshots] object SnapshotMoment {

  /** An offset as Spark gives it: from its log it is only known as JSON. */
  def of(offset: AnyOffset): SnapshotMoment = offset match {
    case moment: SnapshotMoment => moment
    case other => SnapshotMoment.parse(other.json)
  }

  def parse(json: String): SnapshotMoment = {
    val read = JsonMethods.parse(json)
    val copy = Some(read \ "copy").collect { case JString(name) => name }
    val tables = (read \ "tables") match {
      case JArray(versions) =>
        versions.collect { case JString(version) => TableVersion.parse(version) }
      case _ => Nil
    }
    SnapshotMoment(copy, tables)
  }
}
