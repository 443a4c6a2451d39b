// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow
import org.apache.spark.sql.execution.streaming.{Offset, Source}

/**
 * A source that Spark asks for its latest offset, given the offset before. Only such a source can decide, when a
 * query with the trigger `AvailableNow` starts, what the query is to read.
 */
private[changelog] trait LatestOffsetSource extends Source with SupportsTriggerAvailableNow {

  final override def getOffset: Option[Offset] =
    throw new IllegalStateException("latestOffset is called instead")
}
