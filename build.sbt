// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import org.typelevel.sbt.tpolecat.CiMode
import org.typelevel.scalacoptions.ScalacOptions

ThisBuild / organization := "io.sparkchangelog"
ThisBuild / scalaVersion := Dependencies.scalaVersion
ThisBuild / licenses := Seq(License.Apache2)
ThisBuild / tpolecatDefaultOptionsMode := CiMode // every warning is an error, here as in CI

// Options that code extending Spark's own classes can't satisfy: overridden methods have parameters
// they don't use, tests and iterators throw values away, and Spark counts in Int and Long freely.
val unwantedOptions = Set(
  ScalacOptions.warnNonUnitStatement,
  ScalacOptions.warnNumericWiden,
  ScalacOptions.warnUnusedExplicits,
  ScalacOptions.warnUnusedParams,
  ScalacOptions.warnValueDiscard)

Global / concurrentRestrictions :=
  Seq(
    Tags.limit(Tags.ForkedTestGroup, TestProcesses.atOnce),
    Tags.limitAll(math.max(EvaluateTask.SystemProcessors, TestProcesses.atOnce)))

lazy val core = (project in file("."))
  .aggregate(LocalProject("testkit"))
  .settings(Publishing.settings)
  .settings(
    name := "spark-changelog",
    libraryDependencies ++= Dependencies.provided ++ Dependencies.test,
    tpolecatExcludeOptions ++= unwantedOptions,
    scalacOptions ++= Seq("-release", "17"),
    Compile / packageBin / mappings += (baseDirectory.value / "LICENSE") -> "META-INF/LICENSE",
    Compile / scalaSource := baseDirectory.value / "scala" / "src" / "main" / "scala",
    target := SparkLine.target(baseDirectory.value / "target"),
    moduleName := SparkLine.module(name.value),
    Compile / unmanagedSourceDirectories ++=
      SparkLine.sources(baseDirectory.value / "scala" / "src" / "main"),
    Compile / unmanagedJars ++= Dependencies.unmanaged,
    Compile / resourceDirectory := baseDirectory.value / "scala" / "src" / "main" / "resources",
    Test / scalaSource := baseDirectory.value / "tests" / "scala",
    Test / unmanagedSourceDirectories ++= SparkLine.sources(baseDirectory.value / "tests"),
    Test / resourceDirectory := baseDirectory.value / "tests" / "resources",
    // the kit stands on the engine, and the engine's tests on the kit
    Test / unmanagedClasspath ++= (LocalProject("testkit") / Compile / exportedProducts).value,
    Test / fork := true,
    Test / dependencyClasspath ~= Dependencies.onOtherSpark,
    Test / fullClasspath ~= Dependencies.withReleases,
    // one suite at a time in each process
    Test / testGrouping := {
      val options = (Test / forkOptions).value
      val figures = baseDirectory.value / "tests" / "suite-seconds.tsv"
      TestProcesses.deal((Test / definedTests).value, figures)(_.name).zipWithIndex.map {
        case (suites, number) => Tests.Group(s"$number", suites, Tests.SubProcess(options))
      }
    },
    Test / javaOptions ++= JavaModuleOptions.all ++ TestProcesses.javaOptions ++ Seq(
      "-XX:ReservedCodeCacheSize=512m", // which would be 48 MB, soon full, and then nothing compiled
      "-Duser.timezone=UTC",
      "-Dspark.testing=true",
      s"-Djava.io.tmpdir=${(target.value / "tmp").getAbsolutePath}",
      s"-Dspark.changelog.test.home=${baseDirectory.value.getAbsolutePath}",
      s"-Dspark.changelog.test.venv=${sys.env.getOrElse("CHANGELOG_VENV", baseDirectory.value / ".venv")}"),
    Test / testOptions ++= Seq(
      Tests.Argument(TestFrameworks.ScalaTest, "-oDF"),
      Tests.Setup { () => IO.createDirectory(target.value / "tmp") }))

lazy val testkit = (project in file("scala/testkit"))
  .dependsOn(core)
  .settings(Publishing.settings)
  .settings(
    name := "spark-changelog-testkit",
    target := SparkLine.target(baseDirectory.value / "target"),
    moduleName := SparkLine.module(name.value),
    description := "Tests Spark queries over tables that change, with ScalaTest.",
    libraryDependencies ++= Dependencies.provided ++ Dependencies.testkit,
    tpolecatExcludeOptions ++= unwantedOptions,
    scalacOptions ++= Seq("-release", "17"),
    Compile / packageBin / mappings +=
      ((core / baseDirectory).value / "LICENSE") -> "META-INF/LICENSE",
    Compile / unmanagedJars ++= Dependencies.unmanaged)
