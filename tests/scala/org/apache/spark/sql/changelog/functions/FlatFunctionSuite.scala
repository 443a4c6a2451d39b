// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Records as the tools' manuals show them. */
class FlatFunctionSuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  private def feed(records: String*) = new RecordFeed(spark, records)

  /** The rows of a feed, as a batch and as streams, with keys and by the records' before images. */
  private def check(records: Seq[String], call: String, key: String)(rows: String*): Unit =
    Seq("", s", key => '$key'").foreach { keyed =>
      val from = s"$call$keyed)"
      assert(feed(records: _*).batch(from) == rows, from)
      assert(feed(records: _*).stream(from, size = 100) == rows, from)
      assert(feed(records: _*).stream(from, size = 1, restarts = true) == rows, from)
    }

  private def refused(record: String, call: String, fault: String): Unit =
    checkError("CHANGELOG_RECORD_MALFORMED", "fault" -> fault)(feed(record).batch(call))

  private val missing =
    "its old row is missing. Let the source send it, as with REPLICA IDENTITY FULL, or give " +
      "the key of the table, by which it is then restored"

  private def maxwell(kind: String, ts: Long, data: String, old: String = ""): String =
    s"""{"database":"test","table":"e","type":"$kind","ts":$ts,"xid":23396,"commit":true,"position":"master.000006:800911","server_id":23042,"thread_id":108,"data":{$data}$old}"""

  private val creature = "\"comment\":\"I am a creature of light.\""
  private val maxwells = Seq(
    """{"type":"table-create","database":"test","table":"e","def":{"database":"test","charset":"utf8mb4","table":"e","columns":[{"type":"int","name":"id","signed":true}],"primary-key":["id"]},"ts":1477053126000,"sql":"create table test.e ( id int(10) )","position":"master.000006:800050"}""",
    maxwell(
      "insert",
      1477053217,
      s""""id":1,"m":4.2341,"c":"2016-10-21 05:33:37.523000",$creature"""),
    maxwell("insert", 1477053217, """"id":2,"m":1,"c":null,"comment":null"""),
    maxwell(
      "update",
      1477053234,
      s""""id":1,"m":5.444,"c":"2016-10-21 05:33:54.631000",$creature""",
      ""","old":{"m":4.2341,"c":"2016-10-21 05:33:37.523000"}"""),
    maxwell(
      "update",
      1477053235,
      """"id":3,"m":1,"c":null,"comment":null""",
      ""","old":{"id":2}"""),
    """{"type":"table-alter","database":"test","table":"e","old":{"columns":[{"type":"int","name":"id","signed":true}],"primary-key":["id"]},"def":{"table":"e","columns":[]},"ts":1477053308000,"sql":"alter table test.e add column torvalds bigint unsigned after m","position":"master.000006:804398"}""",
    maxwell("delete", 1477053309, s""""id":3,"m":1,"c":null,"comment":null"""),
    maxwell("bootstrap-start", 1477053310, ""),
    maxwell(
      "bootstrap-insert",
      1477053310,
      """"id":4,"m":2.5,"c":"2016-01-01 00:00:00.000000""""),
    maxwell("bootstrap-complete", 1477053310, ""))
  private val e =
    "from_maxwell(TABLE(records), schema => 'id INT, m DECIMAL(9,4), c TIMESTAMP_NTZ, comment STRING'"

  test("Maxwell's records, with DDL and a bootstrap") {
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    check(maxwells, s"$e, table => 'test.e'", "id")(
      "1 5.4440 2016-10-21T05:33:54.631 I am a creature of light.",
      "4 2.5000 2016-01-01T00:00 NULL")
  }

  test("Maxwell's records that can't be read") {
    refused(
      """{"type":"upsert"}""",
      s"$e)",
      "its type is 'upsert', not one of insert, bootstrap-insert, update, delete")
    refused("""{"data":{}}""", s"$e)", "it has no type, so it is no record as Maxwell writes it")
    refused(
      """{"type":"insert","data":{"id":1}}""",
      s"$e, key => 'id')",
      "its ts is not a number")
    refused("""{"type":"insert","ts":1}""", s"$e, key => 'id')", "its new row is missing")
    refused("""{"type":"update","ts":1,"data":{"id":1}}""", s"$e)", missing)
    val dropped = """{"type":"table-drop","database":"test","table":"e","ts":1477053309000}"""
    checkError("CHANGELOG_RECORD_TRUNCATES")(feed(dropped).batch(s"$e)"))
    assert(feed(dropped).batch(s"$e, table => 'test.f')") == Nil)
    assert(feed(dropped).batch(s"$e, on_truncate => 'ignore')") == Nil)
  }

  private def goldenGate(
      op: String,
      pos: Int,
      images: String,
      table: String = "QASOURCE.TCUSTORD"): String =
    f"""{"table":"$table","op_type":"$op","op_ts":"2015-11-05 18:45:39.000000","current_ts":"2016-10-05T10:15:51.310000","pos":"$pos%020d"$images}"""

  private def order(name: String, code: String, price: String, more: String = ""): String =
    s""","$name":{"CUST_CODE":"$code","PRODUCT_PRICE":$price,"PRODUCT_AMOUNT":3$more}"""

  private val goldenGates = Seq(
    goldenGate(
      "I",
      2928,
      order("after", "WILL", "17520.00", ""","ORDER_DATE":"1994-09-30:15:33:00"""")),
    goldenGate("I", 3100, ",\"before\":null" + order("after", "JANE", "1.10")),
    goldenGate("I", 3200, order("after", "BILL", "2"), table = "QASOURCE.OTHERS"),
    goldenGate(
      "U",
      4300,
      order("before", "WILL", "17520.00") + order("after", "WILL", "14000.00")),
    goldenGate("U", 4400, order("before", "JANE", "1.10") + ""","after":{"CUST_CODE":"JUNE"}"""),
    goldenGate("I", 4500, order("after", "BILL", "7")),
    goldenGate("D", 5272, order("before", "BILL", "7") + ",\"after\":null"))
  private val orders =
    "from_goldengate(TABLE(records), schema => 'CUST_CODE STRING, PRODUCT_PRICE DECIMAL(8,2), PRODUCT_AMOUNT INT'"
  private val ofTable = s"$orders, table => 'TCUSTORD'"

  test("GoldenGate's records") {
    check(goldenGates, ofTable, "CUST_CODE")("JUNE 1.10 3", "WILL 14000.00 3")
    check(goldenGates, s"$orders, table => 'QASOURCE.TCUSTORD'", "CUST_CODE")(
      "JUNE 1.10 3",
      "WILL 14000.00 3")
  }

  test("GoldenGate's records in any order, by their positions") {
    val noMoves = goldenGates.patch(4, Nil, 1)
    val shuffled = new scala.util.Random(3).shuffle(noMoves ++ noMoves)
    val rows = Seq("JANE 1.10 3", "WILL 14000.00 3")
    assert(feed(shuffled: _*).batch(s"$ofTable, key => 'CUST_CODE')") == rows)
    assert(feed(shuffled: _*).stream(s"$ofTable, key => 'CUST_CODE')", size = 3) == rows)
  }

  test("GoldenGate's updates with the changed columns only") {
    val partial =
      goldenGate("U", 6000, ""","before":{},"after":{"CUST_CODE":"WILL","PRODUCT_PRICE":null}""")
    val from = s"$ofTable, key => 'CUST_CODE')"
    val rows = Seq("JUNE 1.10 3", "WILL NULL 3")
    assert(feed(goldenGates :+ partial: _*).batch(from) == rows)
    assert(feed(goldenGates :+ partial: _*).stream(from, restarts = true) == rows)
    // the old row can't be taken back
    refused(partial, s"$orders)", missing)
    val unknown = partial.replace("WILL", "NONE")
    checkError("CHANGELOG_VALUE_UNAVAILABLE", "column" -> "PRODUCT_AMOUNT")(
      feed(unknown).batch(from))
  }

  test("GoldenGate's records that can't be read") {
    val keyed = s"$ofTable, key => 'CUST_CODE')"
    refused(
      """{"op_type":"P","table":"TCUSTORD"}""",
      keyed,
      "its op_type is 'P', not one of I, U, D")
    val noPosition = """{"table":"TCUSTORD","op_type":"I","after":{"CUST_CODE":"A"}}"""
    refused(noPosition, keyed, "its pos is missing")
    refused(
      goldenGate("D", 1, ",\"before\":{}"),
      keyed,
      "it is a delete that doesn't tell which row, as its old row is missing")
    refused(goldenGate("I", 1, ""), keyed, "its new row is missing")
    checkError("CHANGELOG_RECORD_TRUNCATES")(feed(goldenGate("T", 1, "")).batch(keyed))
    assert(feed(goldenGate("T", 1, "", "A.XTCUSTORD")).batch(keyed) == Nil)
  }
}
