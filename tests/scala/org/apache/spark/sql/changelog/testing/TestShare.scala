// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import org.scalactic.source.Position
import org.scalatest.Tag
import org.scalatest.funsuite.AnyFunSuiteLike

/** Of a suite that takes minutes, each run takes one test in two, always the same ones; `dev/test-all` takes all. */
trait TestShare extends AnyFunSuiteLike {

  override protected def test(name: String, tags: Tag*)(body: => Any)(implicit
      position: Position): Unit =
    if (Share.takes(name)) super.test(name, tags: _*)(body)
}
