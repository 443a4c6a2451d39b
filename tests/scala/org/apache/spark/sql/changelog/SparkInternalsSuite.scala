// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.{Files, Path}

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing.{GoldenFiles, UsedPackages}

/** What of Spark's internals is used stands in a list, which nobody makes longer unaware. */
class SparkInternalsSuite extends AnyFunSuite with GoldenFiles {
  private val page = "docs/contributing/spark-internals.md"

  /**
   * Where another version of Spark may have other names and parameters. Expressions, plans and their
   * trees are what every extension is written in.
   */
  private val Internals = Seq(
    "org.apache.spark.internal",
    "org.apache.spark.io",
    "org.apache.spark.rdd",
    "org.apache.spark.ui",
    "org.apache.spark.util",
    "org.apache.spark.sql.catalyst.analysis",
    "org.apache.spark.sql.catalyst.optimizer",
    "org.apache.spark.sql.catalyst.parser",
    "org.apache.spark.sql.catalyst.streaming",
    "org.apache.spark.sql.errors",
    "org.apache.spark.sql.execution",
    "org.apache.spark.sql.internal")

  /**
   * Packages of which only `compat` imports anything but these names: types that are passed on as they
   * come, classes of which state, sources and sinks are made, and nodes of plans.
   */
  private val Walled = Map[String, Set[String]](
    "catalyst.optimizer" -> Set.empty,
    "catalyst.parser" -> Set("CatalystSqlParser", "ParseException", "ParserInterface"),
    "execution.aggregate" -> Set("BaseAggregateExec"),
    "execution.datasources.jdbc" -> Set.empty,
    "execution.python" -> Set.empty,
    "execution.streaming.checkpointing" ->
      Set("CheckpointFileManager", "FileSystemBasedCheckpointFileManager"),
    "execution.streaming.operators.stateful" -> Set(
      "EventTimeWatermarkExec",
      "StateStoreWriter",
      "StatefulOperatorCustomMetric",
      "StatefulOperatorCustomSumMetric",
      "StatefulOperatorStateInfo",
      "WatermarkSupport"),
    "execution.streaming.operators.stateful.join" -> Set.empty,
    "execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper" -> Set.empty,
    "execution.streaming.runtime" ->
      Set("LongOffset", "StreamingExecutionRelation", "StreamingRelation"),
    "execution.streaming.state" -> Set(
      "KeyStateEncoderSpec",
      "NoPrefixKeyStateEncoderSpec",
      "OperatorStateMetadata",
      "PrefixKeyScanStateEncoderSpec",
      "StateSchemaValidationResult",
      "StateStore",
      "StateStoreCheckpointInfo",
      "StateStoreConf",
      "StateStoreCustomMetric",
      "StateStoreCustomSizeMetric",
      "StateStoreErrors",
      "StateStoreId",
      "StateStoreIterator",
      "StateStoreMetrics",
      "StateStoreProvider",
      "StateStoreProviderId",
      "UnsafeRowPair"),
    "execution.window" -> Set.empty).map { case (name, passedOn) =>
    s"org.apache.spark.sql.$name" -> passedOn
  } + ("org.apache.spark.ui" -> Set.empty[String])

  /** The same, one name at a time. */
  private val WalledNames: Set[String] = Set(
    "internal.config.ConfigBindingPolicy",
    "rdd.MapPartitionsRDD",
    "rdd.SQLPartitioningAwareUnionRDD",
    "rdd.ZippedPartitionsRDD2",
    "sql.catalyst.analysis.DeduplicateRelations",
    "sql.catalyst.analysis.EliminateSubqueryAliases",
    "sql.catalyst.analysis.EliminateView",
    "sql.catalyst.analysis.NamedStreamingRelation",
    "sql.catalyst.analysis.StreamingJoinHelper",
    "sql.catalyst.analysis.UnsupportedOperationChecker",
    "sql.catalyst.analysis.UpdateAttributeNullability",
    "sql.execution.ExternalAppendOnlyUnsafeRowArray",
    "sql.execution.exchange.REQUIRED_BY_STATEFUL_OPERATOR",
    "sql.execution.streaming.OneTimeTrigger",
    "sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1",
    "sql.internal.UDFAdaptors",
    "util.IndylambdaScalaClosures",
    "util.TaskInterruptListener").map(name => s"org.apache.spark.$name")

  private val Import = "(?m)^import ([\\w.]+)\\.(\\w+|\\{[^}]*\\})".r

  /** The names that a source imports, each with its package. */
  private def imported(source: String): Set[(String, String)] =
    Import
      .findAllMatchIn(UsedPackages.code(source))
      .flatMap(found => UsedPackages.selected(found.group(2)).map(found.group(1) -> _))
      .toSet

  private def isInternal(package_ : String): Boolean =
    Internals.exists(internal => package_ == internal || package_.startsWith(s"$internal."))

  test("names are found however they are imported") {
    val source =
      "import a.b.C\nimport a.{D => E, F}\nimport a.b._\n// import a.G\nval x = \"import a.H\""
    assert(imported(source) == Set("a.b" -> "C", "a" -> "D", "a" -> "F", "a.b" -> "_"))
  }

  private def isCompat(file: Path): Boolean = file.getParent.endsWith("compat")

  private val (compat, others) = UsedPackages
    .sources(home.resolve("scala/src/main"))
    .map(file => file -> imported(Files.readString(file)).filter(name => isInternal(name._1)))
    .partition { case (file, _) => isCompat(file) }

  /** The names by package, one row of a table each. */
  private def rows(names: Seq[(String, String)]): Seq[String] = {
    val used = names.groupMapReduce(name => name)(_ => 1)(_ + _)
    val packages = used.groupMap(_._1._1) { case ((_, name), count) => name -> count }
    packages.toSeq.sortBy(_._1).map { case (package_, names) =>
      val all = names.toSeq.sorted.map {
        case (name, 1) => s"`$name`"
        case (name, count) => s"`$name` $count"
      }
      s"| `$package_` | ${all.mkString(", ")} |"
    }
  }

  test("what another version of Spark may have otherwise is imported by compat alone") {
    others.foreach { case (file, names) =>
      names.foreach { case (package_, name) =>
        val isPassedOn = Walled.get(package_).forall(_.contains(name))
        assert(
          isPassedOn && !WalledNames(s"$package_.$name"),
          s"in $file, which should use something in compat")
      }
    }
  }

  test("what is imported is said by name") {
    others.foreach { case (file, names) =>
      assert(!names.exists(_._2 == "_"), s"in $file: everything hides what is used")
    }
  }

  test("nothing is kept behind compat that nothing there uses") {
    val used = compat.flatMap(_._2).toSet
    WalledNames.foreach { name =>
      assert(used.exists { case (package_, used) => name == s"$package_.$used" }, name)
    }
    Walled.keys.foreach { package_ => assert(used.exists(_._1 == package_), package_) }
    Walled.foreach { case (package_, passedOn) =>
      val unused = passedOn.filterNot(name => others.exists(_._2.contains(package_ -> name)))
      assert(unused.isEmpty, s"of $package_ are used nowhere")
    }
  }

  test("the list of Spark's internals is the one that is written down") {
    val used = others.flatMap(_._2)
    val inCompat = compat
      .groupMap(_._1.getFileName.toString.stripSuffix(".scala"))(_._2)
      .toSeq
      .sortBy(_._1)
      .filter(_._2.exists(_.nonEmpty))
      .map { case (name, names) =>
        val all = names.flatten.filterNot(_._2 == "_").map(_._2).distinct.sorted
        val wild = names.flatten.filter(_._2 == "_").map(_._1.split('.').last + "._").distinct
        s"| `$name` | ${(all ++ wild.sorted).map(name => s"`$name`").mkString(", ")} |"
      }
    checkGolden(
      page,
      (SparkInternalsSuite.Head ++
        Seq("## In compat", "", "| behind | of Spark |", "|---|---|") ++ inCompat ++
        Seq("", "## Elsewhere", "") ++
        Seq(s"${used.distinct.size} names, imported ${used.size} times", "") ++
        Seq("| package | names, and in how many files if in several |", "|---|---|") ++ rows(
          used))
        .mkString("", "\n", "\n"))
  }
}

private object SparkInternalsSuite {
  private val Head = Seq(
    "# Spark's internals",
    "",
    "For developers of spark-changelog: the internal classes of Spark that the engine uses beyond expressions and",
    "plans. Another version of Spark may break these uses. Uses likely to break go through the package `compat`:",
    "constructors and functions with many parameters, classes with new abstract methods, directly called rules, the",
    "planning of a batch, and file formats. `SparkInternalsSuite` fails if other packages import such a class, or if",
    "the lists below grow. Before you add a name, look for a listed class with the same use.",
    "`SPARK_GENERATE_GOLDEN_FILES=1 dev/sbt 'testOnly *SparkInternalsSuite'` writes the lists. [Versions of",
    "Spark](spark-versions.md) lists the needs of other versions. The [glossary](../glossary.md) defines the terms.",
    "")
}
