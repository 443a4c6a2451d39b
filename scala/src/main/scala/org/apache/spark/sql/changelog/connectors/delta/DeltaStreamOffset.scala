// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import scala.util.Try

import org.json4s._
import org.json4s.jackson.JsonMethods

/**
 * DeltaStreamOffset: the position up to which Delta's own stream has read a table.
 *
 * @param table
 *   the table's identity in the log
 * @param version
 *   the last version read. A batch ends within a version only if a limit on files per batch applies.
 */
case class DeltaStreamOffset(table: String, version: Long)

object DeltaStreamOffset {

  /**
   * Returns the offset in a JSON text, if written by Delta. The JSON names a version and the index of the last file
   * read, negative if the stream has read no file of the version.
   */
  def find(json: String): Option[DeltaStreamOffset] =
    Try(JsonMethods.parse(json)).toOption.flatMap { read =>
      (read \ "reservoirId", read \ "reservoirVersion", read \ "index") match {
        case (JString(table), JInt(version), JInt(file)) =>
          Some(DeltaStreamOffset(table, version.toLong - (if (file < 0) 1 else 0)))
        case _ => None
      }
    }
}
