// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.SECRET_REDACTION_PATTERN
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.errors.{Credentials, ViewErrors}

/**
 * Refuses to make a view with a password in its properties, or in the name or an option of a table it reads.
 *
 * What a statement says of a view is stored in its catalog and shown to whoever asks. So it is
 * refused before anything is planned. Names tell what is a secret, as they do elsewhere in Spark, and so do values.
 */
object RefuseSecrets {
  def apply(view: String, properties: Map[String, String], query: LogicalPlan): Unit = {
    def refuse(place: String) = throw ViewErrors.secret(view, place)
    properties.find(isSecret).foreach { case (name, _) => refuse(s"property $name") }
    NamesRead.relations(query).foreach { relation =>
      relation.options.asScala.find(isSecret).foreach { case (name, _) =>
        refuse(s"option $name of its query")
      }
      // parquet.`s3a://key:secret@bucket/path`
      if (relation.multipartIdentifier.exists(Credentials.hasSecret)) {
        refuse(s"path of a table of the format ${relation.multipartIdentifier.head} in its query")
      }
    }
  }

  def isSecret(setting: (String, String)): Boolean =
    SparkEnv.get.conf.get(SECRET_REDACTION_PATTERN).findFirstIn(setting._1).isDefined ||
      Credentials.hasSecret(setting._2)
}
