// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import sbt._

/** Every version and every artifact the build names. */
object Dependencies {

  val scalaVersion = "2.13.18"
  val sparkVersion = "4.2.0"

  /** What a Spark installation brings with it. */
  val spark: Seq[ModuleID] =
    Seq("spark-core", "spark-catalyst", "spark-sql").map("org.apache.spark" %% _ % sparkVersion)

  // no build of Iceberg is for Spark 4.2 yet: of this one the tables work there, not the catalogs
  private val iceberg = "org.apache.iceberg" % "iceberg-spark-runtime-4.0_2.13" % "1.11.0"

  val provided: Seq[ModuleID] = spark.map(_ % Provided)

  /** Spark's own test jars hold `StreamTest`, `QueryTest` and `SharedSparkSession`. */
  val test: Seq[ModuleID] = spark.map(_ % Test classifier "tests") ++ Seq(
    "org.scalatest" %% "scalatest" % "3.2.19" % Test,
    "org.scalatestplus" %% "scalacheck-1-18" % "3.2.19.0" % Test,
    ("org.apache.spark" %% "spark-sql-kafka-0-10" % sparkVersion % Test)
      .exclude("org.apache.spark", "spark-token-provider-kafka-0-10_2.13"),
    "io.delta" % "delta-spark_4.2_2.13" % "4.4.0" % Test,
    iceberg % Test,
    "com.h2database" % "h2" % "2.3.232" % Test,
    "org.mariadb.jdbc" % "mariadb-java-client" % "3.5.6" % Test,
    "org.postgresql" % "postgresql" % "42.7.8" % Test)
}
