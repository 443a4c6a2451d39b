// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

class FromCanalFunctionSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private val records = RecordFeed.read("canal/orders.jsonl")
  private val orders = new RecordFeed(spark, records)
  private val columns =
    "id INT, customer STRING, amount DECIMAL(10,2), paid BOOLEAN, at TIMESTAMP_NTZ"

  private def call(arguments: String, columns: String = columns): String =
    s"from_canal(TABLE(records), schema => '$columns', $arguments)"

  private val rows =
    Seq("2 NULL 3.00 true 2023-11-14T22:13:20", "4 Cyd 1.00 true NULL")

  test("all rows of a record are changes, and old rows are rebuilt") {
    val from = call("table => 'shop.orders'")
    assert(orders.batch(from) == rows)
    assert(orders.stream(from, size = 100) == rows)
    assert(orders.stream(from, size = 2, restarts = true) == rows)
  }

  test("old rows are restored by key") {
    val from = call("key => 'id', table => 'shop.orders'")
    assert(orders.batch(from) == rows)
    assert(orders.stream(from, size = 100) == rows)
    assert(orders.stream(from, size = 2, restarts = true) == rows)
  }

  test("by key, records in any order lead to the same table") {
    val random = new scala.util.Random(11)
    val shuffled = new RecordFeed(spark, random.shuffle(records ++ records))
    val from = call("key => 'id', table => 'shop.orders'")
    assert(shuffled.batch(from) == rows)
    assert(shuffled.stream(from, size = 5) == rows)
  }

  test("digits that a decimal has no room for are refused") {
    val record = """{"type":"INSERT","es":1,"data":[{"id":"1","amount":"1.005"}]}"""
    val fault = "column amount has the value '1.005', which is not of its type DECIMAL(10,2)"
    checkError("CHANGELOG_RECORD_MALFORMED", "fault" -> fault) {
      new RecordFeed(spark, Seq(record))
        .batch(call("key => 'id'", "id INT, amount DECIMAL(10,2)"))
    }
  }

  test("without a table the records of all are read, without DDL") {
    assert(
      orders.batch(call("key => 'id'", "id INT, customer STRING")) ==
        Seq("2 NULL", "4 Cyd", "9 Eve"))
  }

  test("what tells about a record can be columns of the table") {
    val from = call("key => 'id', metadata => array('database', 'es')", "id INT")
    assert(
      orders.batch(from) ==
        Seq("2 shop 1700000002000", "4 shop 1700000003000", "9 archive 1700000002500"))
  }

  test("a record that can't be read is refused with its place and the reason") {
    def refused(
        record: String,
        fault: String,
        arguments: String = "key => 'id'")(kept: String*) = {
      val feed = new RecordFeed(spark, Seq(record))
      checkError(
        "CHANGELOG_RECORD_MALFORMED",
        "function" -> "from_canal",
        "place" -> " (key=NULL, partition=0, offset=0)",
        "fault" -> fault)(feed.batch(call(arguments, "id INT")))
      assert(feed.batch(call(s"$arguments, on_error => 'drop'", "id INT")) == kept)
    }
    refused("[]", "it is not a JSON object")()
    refused("{\"type\":", "it is not JSON of the expected structure")()
    refused("{}", "it has no type, so it is no record as Canal writes it")()
    refused("""{"type":"UPSERT"}""", "its type is 'UPSERT', not one of INSERT, UPDATE, DELETE")()
    refused("""{"type":"INSERT","es":1}""", "it has no data")()
    refused("""{"type":"INSERT","data":[{"id":"1"}]}""", "its es is not a number")()
    refused("""{"type":"INSERT","es":1,"data":[{"ID":"1"}]}""", "its key column id is NULL")()
    refused(
      """{"type":"INSERT","es":1,"data":[{"id":"1"},{"id":"one"}]}""",
      "column id has the value 'one', which is not of its type INT")("1")
    refused(
      """{"type":"UPDATE","es":1,"data":[{"id":"1"}]}""",
      "its old row is missing. Let the source send it, as with REPLICA IDENTITY FULL, or give " +
        "the key of the table, by which it is then restored",
      "input => 'retract'")()
  }

  test("a truncation is refused, unless it is to be ignored") {
    val truncation = """{"type":"TRUNCATE","isDdl":true,"database":"d","table":"t","data":null}"""
    val feed = new RecordFeed(spark, records :+ truncation)
    Seq("", ", on_error => 'drop'").foreach { otherwise =>
      val error = changelogError(feed.batch(call(s"key => 'id'$otherwise")))
      assert(error.getCondition == "CHANGELOG_RECORD_TRUNCATES")
    }
    val shop = "key => 'id', table => 'shop.orders'"
    assert(feed.batch(call(shop)) == rows)
    assert(feed.batch(call("key => 'id', on_truncate => 'ignore'")).size == 3)
  }
}
