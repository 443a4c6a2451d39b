// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.json4s.JsonAST._
import org.json4s.JsonDSL._

/**
 * What a checkpoint says of a node with state and of all that lies below it, so that another query with
 * an equal part can go on with its state.
 *
 * @param fingerprint
 *   the same for two parts exactly if the state of one can be taken for that of the other
 * @param operators
 *   all operators of the part
 * @param givesRows
 *   whether the rows that the node has emitted, and not taken back, can be read from its state
 */
private[changelog] final case class PartRecord(
    fingerprint: String,
    operators: Seq[Long],
    givesRows: Boolean) {

  def toJson: JObject =
    ("fingerprint" -> fingerprint) ~ ("operators" -> operators) ~ ("givesRows" -> givesRows)
}

private[changelog] object PartRecord {
  def fromJson(json: JValue): PartRecord = {
    val JString(fingerprint) = json \ "fingerprint": @unchecked
    val JBool(givesRows) = json \ "givesRows": @unchecked
    PartRecord(fingerprint, OperatorRecord.numbers(json, "operators"), givesRows)
  }
}
