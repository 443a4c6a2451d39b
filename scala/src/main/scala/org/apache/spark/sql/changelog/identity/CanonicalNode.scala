// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.json4s.JsonAST._

/**
 * A node of a query as it is written down, free of anything that is another at the next start.
 *
 * @param text
 *   what the node is, with its arguments
 */
private[changelog] final case class CanonicalNode(text: String, inputs: Seq[CanonicalNode]) {

  /** One line per node, inputs indented. */
  def lines: Seq[String] = text +: inputs.flatMap(_.lines).map("  " + _)

  def toJson: JValue =
    if (inputs.isEmpty) JString(text)
    else JObject("node" -> JString(text), "inputs" -> JArray(inputs.map(_.toJson).toList))
}

private[changelog] object CanonicalNode {
  def fromJson(json: JValue): CanonicalNode = json match {
    case JString(text) => CanonicalNode(text, Nil)
    case node =>
      val JString(text) = node \ "node": @unchecked
      val JArray(inputs) = node \ "inputs": @unchecked
      CanonicalNode(text, inputs.map(fromJson))
  }
}
