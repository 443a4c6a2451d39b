// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.internal.config.{ConfigBindingPolicy, ConfigBuilder}
import org.apache.spark.sql.internal.SQLConf

/** Begins the description of a setting: one of the session, within views and functions too. */
object Setting {
  def apply(key: String): ConfigBuilder =
    SQLConf.buildConf(key).withBindingPolicy(ConfigBindingPolicy.SESSION)
}
