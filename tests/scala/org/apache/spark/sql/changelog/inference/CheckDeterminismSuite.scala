// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.functions.udf

class CheckDeterminismSuite extends InferenceTest {
  private val condition = "CHANGELOG_NONDETERMINISTIC_EXPRESSION"

  test("a random column is refused, over rows that only come too") {
    changelog("t", "a INT, v DOUBLE", All)
    appends("plain", "a INT, v DOUBLE")
    Seq("t", "plain").foreach { table =>
      checkRefused(condition, Map("expression" -> "uuid()", "node" -> "Project")) {
        infer(s"SELECT a, uuid() AS u FROM $table")
      }
    }
  }

  test("a random filter over rows that are taken back is refused, whatever the key") {
    changelog("t", "a INT, v DOUBLE", All, key = Seq("a"))
    checkRefused(condition, Map("expression" -> "rand()")) {
      infer("SELECT * FROM t WHERE v > rand()", Upsert)
    }
  }

  test("a random column over what an aggregate gives is refused, although Spark merges the two") {
    appends("t", "a INT, v DOUBLE")
    checkRefused(condition, Map("expression" -> "rand()")) {
      infer("SELECT a, sum(v) * rand() AS x FROM t GROUP BY a")
    }
  }

  test("chance is refused wherever it could meet a row that is taken back") {
    changelog("t", "a INT, v DOUBLE", All, key = Seq("a"))
    changelog("u", "a INT, w DOUBLE", All)
    Seq(
      "SELECT t.a FROM t JOIN u ON t.a = u.a AND t.v < u.w * rand()",
      "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND t.v < u.w + rand()",
      "SELECT t.a FROM t LEFT ANTI JOIN u ON t.a = u.a AND t.v < u.w + rand()",
      "SELECT a, sum(v) FILTER (WHERE v < rand()) FROM t GROUP BY a",
      "SELECT a, sum(v + rand()) FROM t GROUP BY a",
      "SELECT a, count(*) FROM t GROUP BY a HAVING max(v) < rand()",
      "SELECT v > rand(), count(*) FROM t GROUP BY 1",
      "SELECT a, sum(v * rand()) OVER (PARTITION BY a) FROM t",
      "SELECT a, x FROM t LATERAL VIEW explode(array(v, rand())) AS x",
      "SELECT a FROM t UNION ALL SELECT a FROM u WHERE w < rand()",
      "SELECT a FROM t WHERE a IN (SELECT a FROM u WHERE w < rand())",
      "SELECT a, (SELECT max(w + rand()) FROM u) FROM t").foreach { sql =>
      withClue(sql) {
        val error = intercept[Exception with SparkThrowable](infer(sql))
        // Spark itself refuses chance in the conditions of joins and in aggregate functions
        val isRefusedBySpark = Seq("NON_DETERMINISTIC", "NONDETERMINISTIC")
          .exists(error.getCondition.contains) && !error.getCondition.startsWith("CHANGELOG")
        if (!isRefusedBySpark) {
          assert(error.getCondition == condition)
          assert(error.getMessageParameters.get("expression") == "rand()")
        }
      }
    }
  }

  test("a function that is not declared deterministic is refused") {
    changelog("t", "a INT, v DOUBLE", All)
    spark.udf.register("guess", udf((x: Int) => x + 1).asNondeterministic())
    checkRefused(condition, Map("expression" -> "guess(a)"))(infer("SELECT guess(a) FROM t"))
    appends("plain", "a INT, v DOUBLE")
    // it is called once for each row
    assert(modes(infer("SELECT a FROM plain WHERE guess(a) > 1")) == "Filter[I] < Source[I]")
    infer("SELECT guess(a) AS g, v FROM plain UNION ALL SELECT a, guess(a) FROM plain")
    infer("SELECT p.a, guess(p.a) AS g FROM plain p JOIN plain q ON p.a = q.a")
    infer("SELECT p.a, guess(p.a) AS g FROM plain p JOIN VALUES (1) AS s(a) ON p.a = s.a")
  }

  test("what such a function gives is not kept, nor does it decide what is") {
    appends("plain", "a INT, v DOUBLE")
    appends("timed", "a INT, at TIMESTAMP", watermark = Some("at"))
    spark.udf.register("guess", udf((x: Int) => x + 1).asNondeterministic())
    Seq(
      "SELECT DISTINCT guess(a) FROM plain",
      "SELECT a, max(g) FROM (SELECT a, guess(a) AS g FROM plain) GROUP BY a",
      "SELECT count(*) FROM plain WHERE guess(a) > 1",
      "SELECT p.a FROM plain p JOIN (SELECT * FROM plain WHERE guess(a) > 1) q ON p.a = q.a",
      "SELECT p.g, q.v FROM (SELECT a, guess(a) AS g FROM plain) p JOIN plain q ON p.a = q.a",
      "SELECT p.a, q.v FROM (SELECT guess(a) AS a FROM plain) p JOIN plain q ON p.a = q.a",
      "SELECT * FROM (SELECT guess(a) AS g FROM plain) ORDER BY g LIMIT 2",
      "SELECT a FROM plain WHERE guess(a) > 1 LIMIT 2",
      "SELECT a FROM plain WHERE a IN (SELECT guess(a) FROM plain)",
      "SELECT a, sum(v) OVER (PARTITION BY g) FROM (SELECT *, guess(a) AS g FROM plain)",
      "SELECT a FROM timed WHERE guess(a) > 1 AND at > now()").foreach { sql =>
      withClue(sql) {
        checkRefused(condition, Map("expression" -> "guess(a)"))(infer(sql))
      }
    }
    checkRefused(condition, Map("expression" -> "guess(a)")) {
      infer("SELECT at, count(*) FROM timed WHERE guess(a) > 1 GROUP BY at", Append)
    }
  }

  test("a sample is refused") {
    changelog("t", "a INT", All)
    appends("plain", "a INT")
    Seq("t", "plain").foreach { table =>
      checkRefused(condition, Map("expression" -> "a random sample")) {
        infer(s"SELECT a FROM $table TABLESAMPLE (10 PERCENT)")
      }
    }
  }

  test("a function that depends on the order of rows only is not refused here") {
    changelog("t", "a INT, v DOUBLE", All)
    assert(
      modes(infer("SELECT a, first(v), collect_list(v) FROM t GROUP BY a")) ==
        "Aggregate[I,UB,UA,D] < Source[I,UB,UA,D]")
  }
}
