// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.savepoints

/** The state of a query from which something goes on. */
sealed trait Moment

object Moment {

  /** After the last batch that is done. */
  case object Newest extends Moment

  case class AtBatch(batch: Long) extends Moment

  case class AtSavepoint(name: String) extends Moment
}
