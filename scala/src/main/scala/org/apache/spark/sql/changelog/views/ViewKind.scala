// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.apache.spark.sql.changelog.OutputMode

/** What is kept: a query's rows as they change, or rows that, once written, stay. */
sealed abstract class ViewKind(override val toString: String)

object ViewKind {
  case object MaterializedView extends ViewKind("MATERIALIZED VIEW")

  /** Its rows are written once: a query that would change them is refused. */
  case object StreamingTable extends ViewKind("STREAMING TABLE")

  val values: Seq[ViewKind] = Seq(MaterializedView, StreamingTable)

  /** The changes a table of this kind is kept by; `hasKey`: whether rows can be replaced by one. */
  def mode(kind: ViewKind, hasKey: Boolean): OutputMode = kind match {
    case StreamingTable => OutputMode.Append
    case MaterializedView if hasKey => OutputMode.Upsert
    case MaterializedView => OutputMode.Retract
  }
}
