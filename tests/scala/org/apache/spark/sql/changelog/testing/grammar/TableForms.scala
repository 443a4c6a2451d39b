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
