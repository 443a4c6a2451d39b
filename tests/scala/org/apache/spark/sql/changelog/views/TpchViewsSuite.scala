// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.nio.file.Files

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.Row
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/**
 * The queries of TPC-H as views made by SQL over ordinary tables, which random statements change.
 *
 * With `CHANGELOG_TPCH_VIEWS` all queries over tables of each kind, and as many rounds as it says, over few
 * rows or as many as the scale factor `CHANGELOG_TPCH_SCALE` says; else a few over tables of mixed kinds.
 */
class TpchViewsSuite extends AnyFunSuite with ChangelogSession with GoldenFiles {
  private val rounds = sys.env.get("CHANGELOG_TPCH_VIEWS").map(_.toInt)
  private val scale = sys.env.get("CHANGELOG_TPCH_SCALE").filter(_.nonEmpty)
  private val warehouse = QuickFileSystem.temporaryDirectory()

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ scale.fold(ChangelogSession.Quick)(_ => manyRows) ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "spark.sql.sources.default" -> "parquet"))

  /** As users would have it: with generated code, all of which is kept, and state that needs no heap. */
  private def manyRows = Map(
    "spark.sql.codegen.cache.maxEntries" -> "20000",
    "spark.sql.streaming.stateStore.providerClass" -> "io.sparkchangelog.PagedStateStoreProvider",
    "spark.sql.streaming.stateStore.maintenanceInterval" -> "60s")

  private lazy val tpch = new Tpch(spark, scale)

  private def run(sql: String): Seq[Row] = spark.sql(sql).collect().toSeq

  private val kinds = Map(
    "feeds" -> Seq("delta.enableChangeDataFeed = true"),
    "files" -> Seq("delta.enableDeletionVectors = false"),
    "vectors" -> Seq("delta.enableDeletionVectors = true"),
    "parquet" -> Nil,
    "copies" -> Nil)

  private val few = Seq("q03", "q13")
  private val mixed = Tpch.tables
    .map(_.name)
    .zip(Seq("parquet", "parquet", "feeds", "files", "feeds", "vectors", "files", "vectors"))
    .toMap

  rounds match {
    case None => check("a few of them, over tables of mixed kinds", few, mixed, 2, seed = 1)
    case Some(rounds) =>
      val all = (1 to 22).map(number => f"q$number%02d")
      (kinds.keys.toSeq.sorted :+ "mixed").foreach { kind =>
        val kindOf =
          if (kind == "mixed") mixed else Map.empty[String, String].withDefaultValue(kind)
        check(s"all of them, over tables followed by $kind", all, kindOf, rounds, System.nanoTime)
      }
  }

  private def check(
      name: String,
      queries: Seq[String],
      kindOf: String => String,
      rounds: Int,
      seed: Long): Unit = test(name) {
    val texts = queries.map(name => name -> text(name)).toMap
    val tables =
      Tpch.tables.filter(table =>
        texts.values.exists(s"\\b${table.name}\\b".r.findFirstIn(_).isDefined))
    tables.foreach(table => make(table, kindOf(table.name)))
    val follow =
      if (tables.exists(table => kindOf(table.name) == "copies"))
        Seq("'changelog.follow' = 'copies'")
      else Nil
    // of many rows a full refresh may be cheaper
    val policy = if (scale.isEmpty) Nil else Seq("'changelog.refreshPolicy' = 'incremental'")
    val properties = follow ++ policy
    val clause = if (properties.isEmpty) "" else s"TBLPROPERTIES (${properties.mkString(", ")})"
    try {
      texts.foreach { case (name, text) =>
        run(s"CREATE MATERIALIZED VIEW view_$name USING parquet $clause AS $text")
      }
      val random = new Random(seed)
      for (round <- 1 to rounds) {
        val statements = (0 to tables.size).map { _ =>
          val table = tables(random.nextInt(tables.size))
          val statement = kindOf(table.name) match {
            case "parquet" => insert(table, random)
            case "copies" =>
              if (random.nextBoolean()) insert(table, random) else replace(table, random)
            case _ => change(table, random)
          }
          run(statement)
          statement
        }
        val began = System.nanoTime
        texts.foreach { case (name, text) =>
          withClue(s"$name, seed $seed, round $round, after ${statements.mkString(";\n")}\n") {
            run(s"REFRESH MATERIALIZED VIEW view_$name")
            assert(RowMultiset.of(run(s"SELECT * FROM view_$name")) == RowMultiset.of(run(text)))
            val facts = run(s"DESCRIBE MATERIALIZED VIEW view_$name")
            val last = facts.find(_.getString(0) == "Last refresh").get.getString(1)
            assert(last.contains(", incremental,"))
          }
        }
        if (this.rounds.isDefined) {
          val seconds = (System.nanoTime - began) / 1000000000
          println(s"$name: round $round of $rounds, seed $seed: $seconds s")
        }
      }
      texts.keys.foreach { name =>
        assert(run(s"VERIFY MATERIALIZED VIEW view_$name").isEmpty, name)
      }
    } finally {
      queries.foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS view_$name"))
      tables.foreach { table =>
        run(s"DROP TABLE IF EXISTS ${table.name}")
        run(s"DROP TABLE IF EXISTS base_${table.name}")
      }
    }
  }

  /** Without the order, in which a view keeps no rows. */
  private def text(name: String): String =
    Files.readString(home.resolve(s"tests/sql/tpch/$name.sql")).stripTrailing

  /** All rows in one table, and most of them in the one that is read. */
  private def make(table: Feed, kind: String): Unit = {
    tpch.table(table).write.saveAsTable(s"base_${table.name}")
    val format =
      if (kinds(kind).isEmpty) "USING parquet"
      else s"USING delta TBLPROPERTIES (${kinds(kind).mkString})"
    run(s"CREATE TABLE ${table.name} (${table.columns}) $format")
    run(
      s"INSERT INTO ${table.name} SELECT * FROM base_${table.name} WHERE ${part(table, 10)} > 1")
  }

  private def part(table: Feed, parts: Int, of: String = ""): String =
    s"pmod(hash(${table.key.map(of + _).mkString(", ")}), $parts)"

  private def insert(table: Feed, random: Random): String = {
    val absent = table.key.map(key => s"t.$key = b.$key").mkString(" AND ")
    s"INSERT INTO ${table.name} SELECT * FROM base_${table.name} b " +
      s"WHERE ${part(table, 10)} = ${random.nextInt(10)} " +
      s"AND NOT EXISTS (SELECT * FROM ${table.name} t WHERE $absent)"
  }

  /** All files are other ones then. */
  private def replace(table: Feed, random: Random): String =
    s"INSERT OVERWRITE ${table.name} SELECT * FROM base_${table.name} " +
      s"WHERE ${part(table, 20)} <> ${random.nextInt(20)}"

  private def change(table: Feed, random: Random): String = {
    val some = s"${part(table, 20)} = ${random.nextInt(20)}"
    random.nextInt(9) match {
      case 0 | 1 => s"UPDATE ${table.name} SET ${updates(table.name)} WHERE $some"
      case 2 => s"DELETE FROM ${table.name} WHERE $some"
      case 3 | 4 =>
        val same = table.key.map(key => s"t.$key = s.$key").mkString(" AND ")
        s"MERGE INTO ${table.name} t USING (SELECT * FROM base_${table.name} WHERE $some) s ON $same " +
          s"WHEN MATCHED AND ${part(table, 3, "t.")} = 0 THEN DELETE " +
          "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
      case 5 => s"OPTIMIZE ${table.name}"
      case 6 => s"INSERT OVERWRITE ${table.name} SELECT * FROM ${table.name} WHERE NOT ($some)"
      case 7 =>
        val last = run(s"DESCRIBE HISTORY ${table.name} LIMIT 1").head.getLong(0).toInt
        s"RESTORE TABLE ${table.name} TO VERSION AS OF ${1 + random.nextInt(last)}"
      case _ => insert(table, random)
    }
  }

  private val updates = Map(
    "region" -> "r_comment = upper(r_comment)",
    "nation" -> "n_regionkey = (n_regionkey + 1) % 5",
    "supplier" -> "s_nationkey = (s_nationkey + 1) % 25, s_acctbal = s_acctbal + 1",
    "part" -> "p_size = p_size % 50 + 1, p_brand = 'Brand#12'",
    "partsupp" -> "ps_supplycost = ps_supplycost + 1, ps_availqty = ps_availqty * 2",
    "customer" -> "c_mktsegment = 'BUILDING', c_nationkey = (c_nationkey + 1) % 25",
    "orders" -> "o_custkey = o_custkey + 1, o_orderdate = date_add(o_orderdate, 30)",
    "lineitem" -> "l_quantity = l_quantity + 1, l_suppkey = l_suppkey % 10 + 1")
}
