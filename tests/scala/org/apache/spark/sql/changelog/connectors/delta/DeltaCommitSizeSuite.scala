// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.delta

import org.scalatest.funsuite.AnyFunSuite

/** How much of a commit of Delta's is to be gone through. */
class DeltaCommitSizeSuite extends AnyFunSuite {
  private def file(path: String, bytes: Long, rows: Long) =
    DeltaFileChange(path, bytes, Some(rows))
  private def gone(path: String, bytes: Long) = DeltaFileChange(path, bytes, None, isGone = true)

  test("files of the change feed are all that is read, if there are any") {
    val feed = DeltaFileChange("c", 30, None, changesData = false, isFeed = true)
    assert(
      DeltaCommitSize(
        DeltaFileChanges(Seq(gone("a", 1000), file("b", 1000, 10), feed), 9, 1)) == 30)
  }

  test("rows that come or go count whole, those that were copied a quarter, read twice") {
    assert(DeltaCommitSize(DeltaFileChanges(Seq(file("a", 1000, 10)))) == 1000)
    assert(DeltaCommitSize(DeltaFileChanges(Seq(gone("a", 1000)))) == 1000)
    val updated = Seq(gone("a", 1000), file("b", 1000, 10))
    assert(DeltaCommitSize(DeltaFileChanges(updated)) == 2000)
    assert(DeltaCommitSize(DeltaFileChanges(updated, copied = 8, replaced = 2)) == 400 + 1600 / 4)
    val deleted = Seq(gone("a", 1000), file("b", 800, 8))
    assert(DeltaCommitSize(DeltaFileChanges(deleted, copied = 8, replaced = 2)) == 200 + 1600 / 4)
  }

  test("of a file with another deletion vector only the rows it marks count") {
    val marked = Seq(gone("a", 1000), file("a", 970, 97), file("b", 40, 3))
    assert(DeltaCommitSize(DeltaFileChanges(marked, replaced = 3)) == 30 + 40)
  }

  test("files that only move rows count nothing") {
    val moved = Seq(gone("a", 1000), file("b", 900, 10)).map(_.copy(changesData = false))
    assert(DeltaCommitSize(DeltaFileChanges(moved)) == 0)
  }
}
