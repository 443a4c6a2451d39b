// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

class FromUpsertKafkaFunctionSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {

  private def call(schema: String, arguments: String): String =
    s"from_upsert_kafka(TABLE(records), schema => '$schema', $arguments)"

  private def check(records: String*)(schema: String, arguments: String)(rows: String*): Unit = {
    val feed = new RecordFeed(spark, records)
    val from = call(schema, arguments)
    assert(feed.batch(from) == rows)
    assert(feed.stream(from, size = 100) == rows)
    assert(feed.stream(from, size = 2, restarts = true) == rows)
  }

  test("the newest value of each key is a row, and NULL ends it") {
    check(
      "{\"id\":1}\t{\"id\":1,\"n\":1.5}",
      "{\"id\":2}\t{\"id\":2,\"n\":2}",
      "{\"id\":1}\t{\"id\":1,\"n\":3}",
      "{\"id\":3}\tNULL",
      "{\"id\":2}\tNULL",
      "{\"id\":4}\t{\"id\":4}")("id INT, n DECIMAL(4,1)", "key => 'id'")("1 3.0", "4 NULL")
  }

  test("a key of one column can be a bare value, which the value need not repeat") {
    check("a\t{\"n\":1}", "\"b\"\t{\"n\":2}", "a\tNULL", "c\t{\"n\":3}", "b\t{\"n\":4}")(
      "code STRING, n INT",
      "key => 'code'")("b 4", "c 3")
  }

  test("keys of several columns, and the place of each row's record") {
    check(
      "{\"a\":1,\"b\":\"x\"}\t{\"n\":1}",
      "{\"a\":1,\"b\":\"y\"}\t{\"n\":2}",
      "{\"a\":1,\"b\":\"x\"}\tNULL")(
      "a INT, b STRING, n INT",
      "key => array('a', 'b'), metadata => 'offset', sequence_by => 'offset'")("1 y 2 1")
  }

  test("numbers keep their digits, or are refused") {
    val record = "1\t{\"s\":12345678901234567890.123,\"n\":0.1}"
    check(record)("id INT, s STRING, n DECIMAL(4,1)", "key => 'id'")(
      "1 12345678901234567890.123 0.1")
    val from = call("id INT, s DECIMAL(22,2)", "key => 'id'")
    val fault = "column s has the value '12345678901234567890.123', " +
      "which is not of its type DECIMAL(22,2)"
    checkError("CHANGELOG_RECORD_MALFORMED", "fault" -> fault) {
      new RecordFeed(spark, Seq(record)).batch(from)
    }
    check(record)("id INT, s DECIMAL(22,2)", "key => 'id', encodings => map('s', 'double')")(
      "1 12345678901234567890.12")
  }

  test("a record that can't be read is refused or dropped") {
    def refused(record: String, fault: String) = {
      val feed = new RecordFeed(spark, Seq(record))
      checkError(
        "CHANGELOG_RECORD_MALFORMED",
        "function" -> "from_upsert_kafka",
        "fault" -> fault)(feed.batch(call("id INT, n INT", "key => 'id'")))
      assert(feed.batch(call("id INT, n INT", "key => 'id', on_error => 'drop'")).isEmpty)
    }
    refused("1\t5", "its value is not a JSON object")
    refused("1\t{\"n\":", "its value is not JSON")
    refused("{\"n\":1}", "its key does not tell id")
    refused("NULL", "its key does not tell id")
    refused("one\t{}", "column id has the value 'one', which is not of its type INT")
    refused("one\tNULL", "column id has the value 'one', which is not of its type INT")
    checkError("CHANGELOG_ARGUMENT_INVALID", "argument" -> "key") {
      new RecordFeed(spark, Nil).batch(call("id INT", "value => 'value'"))
    }
  }
}
