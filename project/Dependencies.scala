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

  val provided: Seq[ModuleID] = spark.map(_ % Provided)

  /** Spark's own test jars hold `StreamTest`, `QueryTest` and `SharedSparkSession`. */
  val test: Seq[ModuleID] = spark.map(_ % Test classifier "tests") ++ Seq(
    "org.scalatest" %% "scalatest" % "3.2.19" % Test,
    "org.scalatestplus" %% "scalacheck-1-18" % "3.2.19.0" % Test)
}
