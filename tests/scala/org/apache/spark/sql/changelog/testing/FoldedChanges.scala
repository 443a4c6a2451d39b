// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

/** The table that changes make, both as text. */
object FoldedChanges {

  /** @param changes rows with their change type last, in any order */
  def apply(changes: Seq[String]): Seq[String] = changes
    .groupMapReduce(row => row.take(row.lastIndexOf(' '))) { row =>
      row.drop(row.lastIndexOf(' ') + 1) match {
        case "insert" | "update_postimage" => 1
        case "delete" | "update_preimage" => -1
      }
    }(_ + _)
    .toSeq
    .flatMap { case (row, count) =>
      if (count < 0) throw new AssertionError(s"$row is taken back, but not there")
      Seq.fill(count)(row)
    }
    .sorted
}
