// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import scala.util.Try

import org.json4s._
import org.json4s.jackson.JsonMethods

/**
 * Up to where Delta's own stream has read a table.
 *
 * @param table
 *   the identity that the table has in its log
 * @param version
 *   the last version that was read. A batch ends amid one only where more files were to be read than one may
 */
case class DeltaStreamOffset(table: String, version: Long)

object DeltaStreamOffset {

  /**
   * What an offset's JSON says, if it is one of Delta's. It names a version, and how many of its files were read:
   * none if their index is negative.
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
