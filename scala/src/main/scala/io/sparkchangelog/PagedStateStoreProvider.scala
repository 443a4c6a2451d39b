// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog

import org.apache.spark.sql.changelog.state.PagedStateProvider

/**
 * A state store provider for any streaming query whose state fits into memory.
 *
 * Choose it with `spark.sql.streaming.stateStore.providerClass=io.sparkchangelog.PagedStateStoreProvider`.
 * A batch costs what it changes, not what is stored. Its checkpoints are those of Spark's default
 * provider, `HDFSBackedStateStoreProvider`: a query may change from one to the other at a restart.
 */
class PagedStateStoreProvider extends PagedStateProvider
