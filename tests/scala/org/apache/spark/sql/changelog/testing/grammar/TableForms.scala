// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import scala.util.Random

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types.VariantType

import org.apache.spark.sql.changelog.testing.Feed

/**
 * A table that a data frame makes of others, with the same columns.
 *
 * @param reads
 *   the names of the others
 */
private[grammar] final case class TableForm(
    name: String,
    reads: Seq[String],
    make: SparkSession => DataFrame)

/** Draws tables that data frames make of others. */
private[grammar] object TableForms {
  private type Form = (DataFrame, DataFrame) => DataFrame

  private val forms: Seq[(String, Form)] = Seq(
    "distinct" -> ((t, _) => t.distinct()),
    "union" -> ((t, u) => t.unionByName(u)),
    "except_all" -> ((t, u) => t.exceptAll(u)),
    "intersect" -> ((t, u) => t.intersect(u)),
    "na" -> ((t, _) => t.na.fill(0, Seq("x")).na.drop("any", Seq("k", "s"))),
    "semi" -> ((t, u) => t.join(u.select("k"), Seq("k"), "left_semi")),
    "anti" -> ((t, u) => t.join(u.select("k"), Seq("k"), "left_anti")),
    "full" -> ((t, u) => t.select("k").join(u, Seq("k"), "full_outer")),
    "duplicates" -> ((t, _) => t.dropDuplicates(t.columns.toSeq)),
    "grouped" -> ((t, _) =>
      t.groupBy("k").agg(max("x").as("x"), t.columns.drop(2).map(c => min(c).as(c)).toSeq: _*)),
    "limited" -> ((t, _) => t.orderBy(t.columns.map(col).toSeq: _*).limit(4).offset(1)),
    "nulled" -> ((t, _) => t.withColumn("x", when(col("b"), col("x")))),
    "isin" -> ((t, u) => t.where(col("x").isin(u.select("x")))),
    "exists" -> ((t, u) =>
      t.as("o").where(u.where(u("k") === col("o.k").outer()).exists()).select("o.*")),
    "scalar" -> ((t, u) => t.withColumn("n", u.select(count("*")).scalar())))

  /** The same table as a temporary view, whose columns have passed aliases and casts to their own types. */
  private val aliases: Seq[(String, (String, Seq[(String, String)]) => String)] = Seq(
    "all" -> ((t, _) => s"SELECT * FROM $t"),
    "aliased" -> ((t, columns) =>
      s"SELECT ${columns.map { case (name, _) => s"a.$name AS $name" }.mkString(", ")} FROM $t AS a"),
    "cast" -> ((t, columns) =>
      s"SELECT ${columns.map { case (name, of) => s"CAST($name AS $of) AS $name" }.mkString(", ")} FROM $t"),
    "cte" -> ((t, _) => s"WITH a AS (SELECT * FROM $t) SELECT b.* FROM a AS b"))

  /** Temporary views, one or two on one another, that give the rows of `feed`. */
  def aliased(random: Random, feed: Feed): TableForm = {
    val columns = feed.schema.map(field => field.name -> field.dataType.sql)
    val views = random.shuffle(aliases).take(1 + random.nextInt(2)).map { case (name, select) =>
      s"${name}_${feed.name}" -> select
    }
    TableForm(
      s"${views.map(_._1).mkString("_")}_view",
      Seq(feed.name),
      spark =>
        views.foldLeft(spark.table(feed.name)) { case (below, (name, select)) =>
          below.createOrReplaceTempView(s"below_$name")
          spark.sql(
            s"CREATE OR REPLACE TEMPORARY VIEW $name AS ${select(s"below_$name", columns)}")
          spark.table(name)
        })
  }

  /** The same query, below aliases of its columns or as a common table. */
  def named(random: Random, query: Query): Query = {
    val columns = query.columns.map(column => s"q.${column.sql} AS ${column.sql}").mkString(", ")
    query.copy(sql = random.nextInt(4) match {
      case 0 => s"WITH q AS (${query.sql}) SELECT $columns FROM q"
      case 1 => s"SELECT $columns FROM (SELECT * FROM (${query.sql}) AS p) AS q"
      case 2 => s"SELECT * FROM (${query.sql}) AS q"
      case _ => query.sql
    })
  }

  /** Those that compare all columns. */
  private val comparing =
    Set("distinct", "except_all", "intersect", "duplicates", "grouped", "limited")

  /** Two of them, over the feeds, with names that say what they are. */
  def apply(random: Random, feeds: Seq[Feed]): Seq[TableForm] = {
    val isComparable = !feeds.head.schema.exists(_.dataType == VariantType)
    val forms = this.forms.filter { case (name, _) => isComparable || !comparing(name) }
    Seq.fill(2) {
      val Seq(t, u) = random.shuffle(feeds.map(_.name)).take(2)
      val (name, form) = forms(random.nextInt(forms.size))
      TableForm(s"${name}_${t}_$u", Seq(t, u), spark => form(spark.table(t), spark.table(u)))
    }
  }
}
