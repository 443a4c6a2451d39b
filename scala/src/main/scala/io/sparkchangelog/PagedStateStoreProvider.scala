// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog

import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * PagedStateStoreProvider: stores the state of any streaming query in pages of memory, and spills to local disks.
 *
 * To use the provider, set
 * `spark.sql.streaming.stateStore.providerClass=io.sparkchangelog.PagedStateStoreProvider`. The cost of a batch depends
 * on the changed entries, not on the size of the state. Checkpoints have the format of Spark's default provider,
 * `HDFSBackedStateStoreProvider`: a query may switch between both providers at a restart.
 */
class PagedStateStoreProvider extends PagedStateProvider
