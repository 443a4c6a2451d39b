// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.replay

import scala.util.Random

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/**
 * Random functions over groups of random changing rows, of one table or two, against the same over
 * the tables as they are. The order of rows, which Spark leaves open, does not matter to them.
 */
class GroupedMapPropertySuite extends PropertySuite(numSeeds = 3) {

  override protected def program(seed: Long): (Program, Variant) = {
    val (drawn, variant) = RandomProgram(seed)
    val random = new Random(seed)
    val columns = drawn.feeds.head.schema.fieldNames
    val groups = random.shuffle(columns.toSeq).take(1 + random.nextInt(2))
    val view =
      if (random.nextBoolean()) GroupedMapPropertySuite.ofOne(drawn.feeds.head.name, groups) _
      else GroupedMapPropertySuite.ofTwo(drawn.feeds.map(_.name), groups) _
    val sql =
      if (random.nextBoolean()) "SELECT * FROM mapped"
      else "SELECT k % 5 AS m, count(*) AS c, max(k) AS most FROM mapped GROUP BY 1"
    val program = drawn.copy(sql = sql, views = Map("mapped" -> view))
    (program, variant.copy(mode = "retract", key = Nil))
  }
}

private object GroupedMapPropertySuite {

  /** The values of a row's group; the hash is the same for numbers that are. */
  private def keyed(session: SparkSession, table: String, groups: Seq[String]) = {
    import session.implicits._
    session
      .table(table)
      .selectExpr(
        s"hash(${groups.map(group => s"$group").mkString(", ")}) AS k",
        "coalesce(k, -1) AS v")
      .as[(Int, Int)]
      .groupByKey(_._1)
  }

  def ofOne(table: String, groups: Seq[String])(session: SparkSession): DataFrame = {
    import session.implicits._
    keyed(session, table, groups)
      .flatMapGroups { (k, rows) =>
        val values = rows.map(_._2).toSeq.sorted
        // as many rows as the largest is, and none for some groups
        values.takeRight(values.last % 3).map(v => (k, v, values.sum))
      }
      .toDF("k", "v", "total")
  }

  def ofTwo(tables: Seq[String], groups: Seq[String])(session: SparkSession): DataFrame = {
    import session.implicits._
    val (left, right) =
      (keyed(session, tables.head, groups), keyed(session, tables.last, groups.take(1)))
    left
      .cogroup(right) { (k, rows, others) =>
        Seq((k, rows.map(_._2).toSeq.sorted.mkString(","), others.map(_._2).sum))
      }
      .toDF("k", "vs", "total")
  }
}
