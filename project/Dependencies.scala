// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import sbt.Keys.Classpath
import sbt._

/** Every version and every artifact the build names. */
object Dependencies {

  val scalaVersion = "2.13.18"

  /** The version that is built for where nothing else is said. */
  val mainSpark = "4.2.0"

  /** The version whose artifacts are used, of which each line has tests, Kafka's connector and Delta. */
  private val sparkVersion = sys.env.get("SPARK_VERSION").filter(_.nonEmpty).getOrElse(mainSpark)

  /** What a Spark installation brings with it. */
  val spark: Seq[ModuleID] =
    Seq("spark-core", "spark-catalyst", "spark-sql").map("org.apache.spark" %% _ % sparkVersion)

  /** What the test kit needs besides Spark, as those who use it have it. */
  val testkit: Seq[ModuleID] = Seq("org.scalatest" %% "scalatest" % "3.2.19")

  /** Whether the line has a release of Delta, against which `connectors` is compiled. */
  private lazy val isWithDelta = Seq("4.1", "4.2").contains(SparkLine.current)

  private lazy val delta =
    "io.delta" % s"delta-spark_${SparkLine.of(sparkVersion)}_2.13" % "4.4.0"

  /** Whether the line has a release of Iceberg, against which `connectors` is compiled. */
  private lazy val isWithIceberg = SparkLine.current == "4.1"

  // of the build for an older line the tables work everywhere, not the catalogs
  private lazy val iceberg =
    if (isWithIceberg)
      "org.apache.iceberg" % "iceberg-spark-runtime-4.1_2.13" % "1.12.0" % Provided
    else "org.apache.iceberg" % "iceberg-spark-runtime-4.0_2.13" % "1.11.0" % Test

  /** Tests use Delta, and so does what is compiled. Spark's own test jars hold `StreamTest` and `QueryTest`. */
  lazy val test: Seq[ModuleID] = spark.map(_ % Test classifier "tests") ++ Seq(
    "org.scalatest" %% "scalatest" % "3.2.19" % Test,
    "org.scalatestplus" %% "scalacheck-1-18" % "3.2.19.0" % Test,
    ("org.apache.spark" %% "spark-sql-kafka-0-10" % sparkVersion % Test)
      .exclude("org.apache.spark", "spark-token-provider-kafka-0-10_2.13"),
    ("org.apache.spark" %% "spark-pipelines" % sparkVersion % Test).intransitive(),
    delta % (if (isWithDelta) Provided else Test),
    iceberg,
    // the client of the Kafka connector
    "org.apache.kafka" % "kafka-clients" % "3.9.1" % Provided,
    "com.h2database" % "h2" % "2.3.232" % Test,
    "com.mysql" % "mysql-connector-j" % "9.5.0" % Test,
    "org.mariadb.jdbc" % "mariadb-java-client" % "3.5.6" % Test,
    "org.postgresql" % "postgresql" % "42.7.8" % Test) ++ s3a

  /** S3A for `dev/object-store`, without the bundle of the AWS SDK, which has 690 MB. */
  private lazy val s3a: Seq[ModuleID] =
    if (!sys.env.contains("CHANGELOG_OBJECT_STORE")) Nil
    else
      Seq("s3", "s3-transfer-manager", "sts").map(
        "software.amazon.awssdk" % _ % "2.35.4" % Test) ++ Seq(
        ("org.apache.hadoop" % "hadoop-aws" % "3.5.0" % Test).intransitive(),
        ("software.amazon.s3.analyticsaccelerator" % "analyticsaccelerator-s3" % "1.3.1" % Test)
          .intransitive())

  /** The jars of the Spark to use instead of these artifacts: those in the folder `SPARK_JARS`. */
  private val otherJars: Seq[File] =
    sys.env.get("SPARK_JARS").toSeq.flatMap(folder => (file(folder) * "*.jar").get)

  private val OfSpark = "spark-sql_2\\.13-([\\d.]+)\\.jar".r

  /** The version that is used. */
  val usedSpark: String =
    otherJars
      .map(_.getName)
      .collectFirst { case OfSpark(version) => version }
      .getOrElse(sparkVersion)

  private val isOfOtherLine = SparkLine.of(usedSpark) != SparkLine.of(sparkVersion)

  val provided: Seq[ModuleID] = if (isOfOtherLine) Nil else spark.map(_ % Provided)

  /** What tests run with: without Delta if it has no release for the line. */
  def withReleases(classpath: Classpath): Classpath =
    if (isWithDelta) classpath else classpath.filterNot(_.data.getName.startsWith("delta-"))

  /** What is compiled against where it is of another line; else against the version above, as is released. */
  val unmanaged: Classpath = if (isOfOtherLine) otherJars.map(Attributed.blank) else Nil

  /** What tests use, with the other Spark's jars first and without those that they replace. */
  def onOtherSpark(classpath: Classpath): Classpath = {
    val replaced =
      otherJars.map(_.getName.replaceAll("-[\\d.]+\\.jar", s"-$sparkVersion.jar")).toSet
    otherJars.map(Attributed.blank) ++ classpath.filterNot(jar => replaced(jar.data.getName))
  }
}
