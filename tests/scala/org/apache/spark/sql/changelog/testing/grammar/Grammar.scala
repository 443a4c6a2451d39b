// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

/** How much of SQL is drawn. What a seed draws from one grammar never changes. */
sealed trait Grammar

object Grammar {

  /** What kept seeds were drawn from. */
  case object Narrow extends Grammar

  /**
   * More types and forms of conditions, tables made by data frames, many NULLs, and subqueries in all
   * their forms, wherever an expression may stand.
   */
  case object Wide extends Grammar

  /**
   * The wide one over tables with columns of further types: decimals and intervals, variants, texts of
   * fixed and of bounded length, and of collations in which several texts are one; with `LIMIT`
   * without an order where it doesn't matter which rows it leaves.
   */
  case object Widest extends Grammar
}
