// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File

import org.apache.iceberg.hadoop.HadoopTables
import org.apache.iceberg.{Table => IcebergApi}
import org.scalatest.Suite

import org.apache.spark.sql.classic.SparkSession

import org.apache.spark.sql.changelog.testing._

/** Gives a suite a session with Iceberg's extension, and a catalog `ice` of Iceberg tables. */
trait IcebergSession extends ViewSession { this: Suite =>
  private lazy val home = new File(warehouse, "ice")

  /** The extensions in the order of the session. */
  protected def extensions: Seq[String] =
    ChangelogSession
      .DeltaConf("spark.sql.extensions")
      .split(',')
      .toSeq :+ IcebergCatalog.Extension

  /** Further settings of the session. */
  protected def settings: Map[String, String] = Map.empty

  override protected lazy val spark: SparkSession = {
    // The second catalog stands for another process: both cache tables of their own.
    val catalogs = Seq("ice", "other").flatMap { name =>
      Map(
        s"spark.sql.catalog.$name" -> classOf[IcebergCatalog].getName,
        s"spark.sql.catalog.$name.home" -> home.getPath)
    }
    ChangelogSession.start(conf =
      ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ catalogs ++ Map(
        "spark.sql.warehouse.dir" -> warehouse.getPath,
        "spark.sql.extensions" -> extensions.mkString(",")) ++ settings)
  }

  /** The table through Iceberg's interface. */
  protected def api(table: String): IcebergApi =
    new HadoopTables(spark.sessionState.newHadoopConf())
      .load(new File(home, s"db/$table").getPath)

  protected def call(procedure: String, table: String, more: String*): Unit = {
    run(s"CALL ice.system.$procedure(${(s"table => 'db.$table'" +: more).mkString(", ")})")
    ()
  }

  /** The clause of a table whose rows are changed by new files, or by position deletes. */
  protected def written(mode: String, version: Int): String =
    Seq("delete", "update", "merge")
      .map(statement => s"'write.$statement.mode' = '$mode'")
      .mkString(s"TBLPROPERTIES ('format-version' = '$version', ", ", ", ")")

  protected val ways: Seq[(String, String)] = Seq(
    "rewritten files" -> written("copy-on-write", 2),
    "position deletes" -> written("merge-on-read", 2),
    "deletion vectors" -> written("merge-on-read", 3))
}
