// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.execution.streaming.state.{
  StateStore,
  StateStoreConf,
  StateStoreProvider
}

/** Opens a version of a store as one that holds nothing, whatever there is of it. */
private[compat] object EmptyStores {
  def open(
      provider: StateStoreProvider,
      version: Long,
      storeConf: StateStoreConf,
      hadoopConf: Configuration): StateStore =
    provider.getStore(version, None, forceSnapshotOnCommit = true, loadEmpty = true)
}
