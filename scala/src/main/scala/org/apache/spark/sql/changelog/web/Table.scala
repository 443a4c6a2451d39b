// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.time.{Duration, Instant}

import scala.xml.{Elem, NodeSeq, Text}

import org.apache.spark.util.Utils

/** Tables and values as pages of Spark's UI show them. */
private[web] object Table {

  def apply(heads: Seq[String], rows: Seq[Seq[NodeSeq]]): Elem =
    <div class="table-responsive"><table class="table table-bordered table-sm table-striped">
      <thead><tr>{heads.map(head => <th>{head}</th>)}</tr></thead>
      <tbody>{rows.map(row => <tr>{row.map(cell => <td>{cell}</td>)}</tr>)}</tbody>
    </table></div>

  /** A heading with a table below, or with what is said where that has no rows. */
  def under(heading: String, heads: Seq[String], rows: Seq[Seq[NodeSeq]], none: String): NodeSeq =
    <h4>{heading}</h4> ++ (if (rows.isEmpty) <p>{none}</p> else apply(heads, rows))

  def text(value: Option[String]): NodeSeq = value.fold(NodeSeq.Empty)(Text(_))

  def text(value: String): NodeSeq = Text(value)

  def count(value: Option[Long]): NodeSeq = text(value.map(number => f"$number%,d"))

  def bytes(value: Option[Long]): NodeSeq = text(value.map(Utils.bytesToString))

  def seconds(value: Option[Double]): NodeSeq = text(value.map(seconds => f"$seconds%,.1f s"))

  def link(address: String, text: String): Elem = <a href={address}>{text}</a>

  /** How long ago something was, at most. */
  def since(time: Instant): NodeSeq =
    seconds(Some(Duration.between(time, Instant.now()).toMillis / 1000.0))
}
