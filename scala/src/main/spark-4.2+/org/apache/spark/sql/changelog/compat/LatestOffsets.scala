// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import org.apache.spark.sql.execution.streaming.runtime.StreamProgress

/** What sources have to give, beyond what a batch reads. */
private[compat] object LatestOffsets {

  /** Lets them find out, where they can't do without. */
  def find(offsets: StreamProgress): Unit = ()
}
