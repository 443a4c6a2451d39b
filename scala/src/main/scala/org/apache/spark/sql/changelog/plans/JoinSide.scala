// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

/** How the rows of one side of a join are kept under their join key, said as EXPLAIN says it. */
sealed abstract class JoinSide(override val toString: String)

object JoinSide {

  /** Its rows are never looked up: nothing is kept. */
  case object Nothing extends JoinSide("nothing")

  /** The join key holds a key of the side: `join key -> row`. */
  case object OneRow extends JoinSide("one row per join key")

  /** The side has another key: `join key, key -> row`. */
  case object RowByKey extends JoinSide("row by key")

  /** The side has no key: `join key, row -> count`. */
  case object RowCount extends JoinSide("row count")

  /** The side has no key, and rows only come: `join key, batch -> rows`. */
  case object RowList extends JoinSide("rows by batch")

  /** Only whether there are rows matters: `join key -> count`. */
  case object KeyCount extends JoinSide("key count")
}
