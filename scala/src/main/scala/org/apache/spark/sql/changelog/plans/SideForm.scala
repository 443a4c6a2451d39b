// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

/** How the rows of one side of a join are kept under their join key, said as EXPLAIN says it. */
sealed abstract class SideForm(override val toString: String)

object SideForm {

  /** Its rows are never looked up: nothing is kept. */
  case object Nothing extends SideForm("nothing")

  /** The join key holds a key of the side: `join key -> row`. */
  case object OneRow extends SideForm("one row per join key")

  /** The side has another key: `join key, key -> row`. */
  case object RowByKey extends SideForm("row by key")

  /** The side has no key: `join key, row -> count`. */
  case object RowCount extends SideForm("row count")

  /** The side has no key, and rows only come: `join key, batch -> rows`. */
  case object RowList extends SideForm("rows by batch")

  /** Only whether there are rows matters: `join key -> count`. */
  case object KeyCount extends SideForm("key count")
}
