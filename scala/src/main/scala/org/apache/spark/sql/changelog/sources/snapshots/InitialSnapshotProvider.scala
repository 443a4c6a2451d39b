// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.snapshots

import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.sources.{DataSourceRegister, StreamSourceProvider}
import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.errors.ChangelogErrors

/**
 * What Spark finds under the name of [[InitialSnapshotData]], which makes its sources itself: what they read is a
 * plan, and no option tells it.
 */
class InitialSnapshotProvider extends StreamSourceProvider with DataSourceRegister {

  override def shortName(): String = InitialSnapshotProvider.Name

  override def sourceSchema(
      sqlContext: SQLContext,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): (String, StructType) = refuse()

  override def createSource(
      sqlContext: SQLContext,
      metadataPath: String,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): Source = refuse()

  private def refuse(): Nothing = throw ChangelogErrors.argumentInvalid(
    shortName(),
    "table",
    "NULL",
    "a snapshot is read beside a feed, by from_changelog(TABLE(feed), snapshot => TABLE(t), ...) and its like")
}

private[snapshots] object InitialSnapshotProvider {
  val Name = "changelog-initial-snapshot"
}
