// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config.SECRET_REDACTION_PATTERN
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.errors.ViewErrors

/**
 * Refuses to make a view with a password in its properties, or in an option of a table it reads.
 *
 * What a statement says of a view is stored in its catalog and shown to whoever asks. So it is
 * refused before anything is planned; names tell what is a secret, as they do elsewhere in Spark.
 */
object RefuseSecrets {
  def apply(view: String, properties: Map[String, String], query: LogicalPlan): Unit = {
    properties.keys.find(isSecret).foreach { name =>
      throw ViewErrors.secret(view, s"property $name")
    }
    NamesRead.relations(query).flatMap(_.options.keySet.asScala).find(isSecret).foreach { name =>
      throw ViewErrors.secret(view, s"option $name of its query")
    }
  }

  def isSecret(name: String): Boolean =
    SparkEnv.get.conf.get(SECRET_REDACTION_PATTERN).findFirstIn(name).isDefined
}
