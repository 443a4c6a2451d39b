// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.HexFormat

import org.scalatest.funsuite.AnyFunSuite

/** What a seed draws never changes: kept seeds would check something else than what failed once. */
class GrammarSuite extends AnyFunSuite {

  private def fingerprint(grammar: Grammar): String = {
    val digest = MessageDigest.getInstance("SHA-256")
    (1 to 300).foreach { seed =>
      val (program, variant) = RandomSqlProgram(seed.toLong, grammar)
      digest.update(s"$program$variant${program.views.keys}".getBytes(UTF_8))
    }
    HexFormat.of().formatHex(digest.digest()).take(16)
  }

  test("the narrow grammar draws what it always drew") {
    assert(fingerprint(Grammar.Narrow) == "967cf14228bd3fb3")
  }

  test("the wide grammar draws what it always drew") {
    assert(fingerprint(Grammar.Wide) == "c53242d3290398ee")
  }
}
