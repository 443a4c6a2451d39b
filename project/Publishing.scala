// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

import sbt.Keys._
import sbt._

/** What is published for Maven: see dev/release. The plugin sbt-sbom adds the SBOM. */
object Publishing {

  /** Where the repository is; whoever publishes says it. */
  private val address: Option[URL] = sys.env.get("PROJECT_URL").filter(_.nonEmpty).map(url(_))

  val settings: Seq[Setting[_]] = Seq(
    description := "Keep the result of any Spark query current while its inputs change.",
    homepage := address,
    scmInfo := address.map(at => ScmInfo(at, s"scm:git:$at.git")),
    developers := address.toList.map(
      Developer("spark-changelog", "the spark-changelog authors", "", _)),
    versionScheme := Some("early-semver"),
    publishTo := localStaging.value, // a folder, which sbt's own sonaRelease uploads
    // what users type; the rest is open to read in the sources
    Compile / doc / scalacOptions ++= Seq("-skip-packages", "org.apache.spark"))
}
