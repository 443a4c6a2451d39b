// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.connector.catalog.{
  Identifier, InMemoryRowLevelOperationTableCatalog, Table
}

/** Spark's table catalog of tests, whose tables all sessions see. */
class SharedCatalog extends InMemoryRowLevelOperationTableCatalog {
  tables = SharedCatalog.tables
}

object SharedCatalog {
  private val tables = new ConcurrentHashMap[Identifier, Table]()
}
