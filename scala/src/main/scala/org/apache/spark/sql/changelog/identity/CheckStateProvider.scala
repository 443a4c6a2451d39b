// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.start

import scala.util.Try

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

import org.apache.spark.sql.changelog.errors.CheckpointFileErrors
import org.apache.spark.sql.changelog.plans.KeepsState
import org.apache.spark.sql.changelog.state.PagedStateProvider

/** Refuses to keep state in pages where each attempt of a task is to have files of its own. */
private object CheckStateProvider {

  /**
   * @param query
   *   as it runs
   * @param recorded
   *   the settings that the checkpoint has
   */
  def apply(query: LogicalPlan, recorded: Map[String, String], conf: SQLConf): Unit = {
    val format = conf.stateStoreCheckpointFormatVersion
    val provider =
      recorded.getOrElse(SQLConf.STATE_STORE_PROVIDER_CLASS.key, conf.stateStoreProviderClass)
    if (format > 1 && isPaged(provider) && query.exists(_.isInstanceOf[KeepsState])) {
      throw CheckpointFileErrors.formatNotSupported(format)
    }
  }

  private def isPaged(provider: String): Boolean =
    Try(Utils.classForName[Any](provider)).toOption
      .exists(classOf[PagedStateProvider].isAssignableFrom(_))
}
