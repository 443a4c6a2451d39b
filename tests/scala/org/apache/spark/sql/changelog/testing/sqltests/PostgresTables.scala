// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.sqltests

import java.nio.charset.StandardCharsets.UTF_8

import scala.io.Source
import scala.util.Using

import org.apache.spark.sql.Encoders
import org.apache.spark.sql.classic.SparkSession

/** The tables that Spark's files of statements find already there, as Spark's own suite makes them. */
private[sqltests] object PostgresTables {
  private val MaxLines = 150
  private val Tens = Seq(
    "unique1",
    "unique2",
    "two",
    "four",
    "ten",
    "twenty",
    "hundred",
    "thousand",
    "twothousand",
    "fivethous",
    "tenthous",
    "odd",
    "even").map(_ + " INT").mkString(", ") + ", stringu1 STRING, stringu2 STRING, string4 STRING"

  def create(session: SparkSession, file: SqlTestFile): Unit = {
    session
      .range(1, 101)
      .selectExpr("CAST(id AS INT) AS key", "CAST(id AS STRING) AS value")
      .createOrReplaceTempView("testdata")
    session
      .sql(
        "SELECT * FROM VALUES (array(1, 2, 3), array(array(1, 2, 3))), " +
          "(array(2, 3, 4), array(array(2, 3, 4))) AS d(arraycol, nestedarraycol)")
      .createOrReplaceTempView("arraydata")
    session
      .sql(
        "SELECT * FROM VALUES (map(1, 'a1', 2, 'b1', 3, 'c1', 4, 'd1', 5, 'e1')), " +
          "(map(1, 'a2', 2, 'b2', 3, 'c2', 4, 'd2')), (map(1, 'a3', 2, 'b3', 3, 'c3')), " +
          "(map(1, 'a4', 2, 'b4')), (map(1, 'a5')) AS d(mapcol)")
      .createOrReplaceTempView("mapdata")
    if (file.name.contains("postgreSQL/") || file.name.contains("udaf")) {
      read(session, "agg", "a INT, b FLOAT", "aggtest")
      read(session, "onek", Tens, "onek")
      read(session, "tenk", Tens, "tenk1")
    }
  }

  private def read(session: SparkSession, data: String, columns: String, name: String): Unit = {
    val stream = getClass.getClassLoader.getResourceAsStream(s"test-data/postgresql/$data.data")
    val lines = Using.resource(stream)(
      Source.fromInputStream(_, UTF_8.name).getLines().take(MaxLines).toList)
    session.read
      .option("delimiter", "\t")
      .schema(columns)
      .csv(session.createDataset(lines)(Encoders.STRING))
      .createOrReplaceTempView(name)
  }
}
