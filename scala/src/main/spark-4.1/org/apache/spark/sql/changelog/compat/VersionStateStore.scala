// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.execution.streaming.state.StateStore

/** What only this version's state stores can do. */
trait VersionStateStore extends StateStore {

  /** Refuses what is for several values. */
  protected def oneValuePerKey(): Nothing
}
