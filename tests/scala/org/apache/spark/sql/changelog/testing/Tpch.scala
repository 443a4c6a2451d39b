// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.sys.process._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.{DataFrame, Row}

/**
 * The eight tables of TPC-H, with changes: rows that come, move and go.
 *
 * The rows are those of `tpchgen-cli`, a few of them, and made denser so that every query with its
 * parameters of the specification has a result.
 *
 * @param scale
 *   the scale factor of the specification, with all rows as they are; none for the few
 */
final class Tpch(spark: SparkSession, scale: Option[String] = None) {
  import Tpch._

  private lazy val folder: Path = {
    val directory = QuickFileSystem.temporaryDirectory().toPath
    val command = Seq(
      s"${sys.props("spark.changelog.test.venv")}/bin/tpchgen-cli",
      "csv",
      s"--scale-factor=${scale.getOrElse("0.001")}",
      s"--output-dir=$directory")
    val output = new StringBuilder
    val log = ProcessLogger(line => output.append(line).append('\n'))
    assert(command.!(log) == 0, s"tpchgen-cli failed: $output")
    assert(Files.exists(directory.resolve("lineitem.csv")), output)
    directory
  }

  /** A table of all rows. */
  def table(feed: Feed): DataFrame =
    if (scale.nonEmpty) read(feed)
    else spark.createDataFrame(rows(feed).asJava, feed.schema)

  private def read(feed: Feed): DataFrame = spark.read
    .schema(feed.schema)
    .option("header", "true")
    .csv(folder.resolve(s"${feed.name}.csv").toString)

  /** The few rows of a table. */
  def rows(feed: Feed): Seq[Row] = {
    val dense =
      denser.getOrElse(feed.name, Nil).foldLeft(read(feed)) { case (frame, (column, value)) =>
        frame.withColumn(
          column,
          org.apache.spark.sql.functions.expr(value).cast(feed.schema(column).dataType))
      }
    val few = most.get(feed.name).map(dense.where).getOrElse(dense)
    // with so few suppliers the generator gives a part the same supplier twice
    val key = feed.key.map(feed.schema.fieldIndex)
    few.orderBy(feed.key.map(few.col): _*).collect().toSeq.distinctBy(row => key.map(row.get))
  }

  /** What arrives: most rows, then more of them, then updates and deletes, then some again. */
  lazy val steps: Seq[Step] = {
    val all = tables.map(feed => feed.name -> rows(feed)).toMap
    def part(name: String, accepts: Row => Boolean): Seq[Row] = all(name).filter(accepts)
    def kinds(kind: String, rows: Seq[Row]): Seq[Change] = rows.map(Change(kind, _))
    def updates(name: String, every: Int, changed: Row => Row, first: Int = 0): Seq[Change] =
      all(name).zipWithIndex.collect {
        case (row, index) if index % every == first =>
          Seq(Change("-U", row), Change("+U", changed(row)))
      }.flatten
    def isLate(row: Row): Boolean = row.getInt(0) % 4 == 3
    def goes(row: Row): Boolean = row.getInt(0) % 7 == 5
    val moving = Seq("orders", "lineitem")

    val first = all.map { case (name, rows) =>
      name -> kinds("+I", if (moving.contains(name)) rows.filterNot(isLate) else rows.tail)
    }
    val second = all.map { case (name, rows) =>
      name -> kinds("+I", if (moving.contains(name)) rows.filter(isLate) else rows.take(1))
    }
    val third = Map(
      "orders" -> kinds("-D", part("orders", goes)),
      "lineitem" -> (kinds("-D", part("lineitem", goes)) ++
        updates(
          "lineitem",
          2,
          row => set(row, 5, row.getDecimal(5).add(java.math.BigDecimal.ONE)))
          .filterNot(change => goes(change.row))),
      "supplier" -> updates("supplier", 2, set(_, 3, 7)),
      "part" -> updates("part", 5, row => set(set(row, 3, "Brand#12"), 5, 5)),
      "partsupp" -> updates(
        "partsupp",
        2,
        row => set(set(row, 2, 1), 3, java.math.BigDecimal.ONE.setScale(2))),
      "customer" -> updates("customer", 4, set(_, 6, "BUILDING")))
    // an order and its lines come back, to another customer and by another supplier
    val fourth = Map(
      "orders" -> kinds("+I", part("orders", goes).take(20).map(set(_, 1, 1))),
      "lineitem" -> kinds("+I", part("lineitem", goes).take(80).map(set(_, 2, 2))),
      "supplier" -> updates("supplier", 2, set(_, 3, 20), first = 1),
      "nation" -> updates("nation", 25, set(_, 2, 3)),
      "customer" -> kinds(
        "-D",
        all("customer").takeRight(9).filterNot(isChanged(all("customer"), 4))))
    Seq(first, second, third, fourth).map(Step(_))
  }
}

object Tpch {
  private val Money = "DECIMAL(15,2)"

  val tables: Seq[Feed] = Seq(
    Feed("region", "r_regionkey INT, r_name STRING, r_comment STRING", Seq("r_regionkey")),
    Feed(
      "nation",
      "n_nationkey INT, n_name STRING, n_regionkey INT, n_comment STRING",
      Seq("n_nationkey")),
    Feed(
      "supplier",
      s"s_suppkey INT, s_name STRING, s_address STRING, s_nationkey INT, s_phone STRING, s_acctbal $Money, s_comment STRING",
      Seq("s_suppkey")),
    Feed(
      "part",
      s"p_partkey INT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, p_container STRING, p_retailprice $Money, p_comment STRING",
      Seq("p_partkey")),
    Feed(
      "partsupp",
      s"ps_partkey INT, ps_suppkey INT, ps_availqty INT, ps_supplycost $Money, ps_comment STRING",
      Seq("ps_partkey", "ps_suppkey")),
    Feed(
      "customer",
      s"c_custkey INT, c_name STRING, c_address STRING, c_nationkey INT, c_phone STRING, c_acctbal $Money, c_mktsegment STRING, c_comment STRING",
      Seq("c_custkey")),
    Feed(
      "orders",
      s"o_orderkey INT, o_custkey INT, o_orderstatus STRING, o_totalprice $Money, o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
      Seq("o_orderkey")),
    Feed(
      "lineitem",
      s"l_orderkey INT, l_partkey INT, l_suppkey INT, l_linenumber INT, l_quantity $Money, l_extendedprice $Money, l_discount $Money, l_tax $Money, l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, l_comment STRING",
      Seq("l_orderkey", "l_linenumber")))

  /** Columns given other values, so that the queries find something in few rows. */
  private val denser: Map[String, Seq[(String, String)]] = Map(
    "supplier" -> Seq(
      "s_nationkey" -> "element_at(array(6, 7, 3, 20, 2, 8), s_suppkey % 6 + 1)",
      "s_comment" -> "if(s_suppkey = 4, 'Customer and Complaints', s_comment)"),
    "customer" -> Seq(
      "c_nationkey" -> "element_at(array(6, 7, 3, 8, 2), c_custkey % 5 + 1)",
      "c_phone" -> "concat(element_at(array('13', '31', '23', '29'), c_custkey % 4 + 1), c_phone)"),
    "part" -> Seq(
      "p_name" -> "if(p_partkey % 3 = 0, concat('forest green ', p_name), p_name)",
      "p_brand" -> "element_at(array('Brand#12', 'Brand#23', 'Brand#34', 'Brand#45'), p_partkey % 4 + 1)",
      "p_container" -> "element_at(array('SM CASE', 'MED BOX', 'LG BOX', 'MED BAG'), p_partkey % 4 + 1)",
      "p_type" -> "element_at(array('ECONOMY ANODIZED STEEL', 'PROMO BRASS', p_type), p_partkey % 3 + 1)",
      "p_size" -> "element_at(array(15, 3, 49, 9, 14), p_partkey % 5 + 1)"),
    "lineitem" -> Seq(
      "l_quantity" -> "if(l_orderkey % 8 = 0, 90, l_quantity)",
      "l_shipinstruct" -> "if(l_linenumber < 3, 'DELIVER IN PERSON', l_shipinstruct)",
      "l_shipmode" -> "if(l_linenumber < 3, 'AIR', l_shipmode)"))

  /** Which rows are taken. */
  private val most: Map[String, String] =
    Map("orders" -> "o_orderkey < 1200", "lineitem" -> "l_orderkey < 1200")

  private def set(row: Row, column: Int, value: Any): Row =
    Row.fromSeq(row.toSeq.updated(column, value))

  private def isChanged(rows: Seq[Row], every: Int)(row: Row): Boolean =
    rows.indexOf(row) % every == 0
}
