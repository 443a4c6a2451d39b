// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreProvider}

/** How this version asks for a state store. */
trait VersionStateProvider extends StateStoreProvider {

  /** The store of a version, as later versions of Spark ask for it. */
  private[changelog] def openStore(
      version: Long,
      stateStoreCkptId: Option[String],
      forceSnapshotOnCommit: Boolean,
      loadEmpty: Boolean): StateStore

  override final def getStore(version: Long, stateStoreCkptId: Option[String]): StateStore =
    openStore(version, stateStoreCkptId, forceSnapshotOnCommit = false, loadEmpty = false)
}
