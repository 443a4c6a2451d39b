// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.table

import java.util
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.connector.catalog.{
  Identifier,
  InMemoryRowLevelOperationTableCatalog,
  Table
}

/** Spark's table catalog of tests, whose tables all sessions see. */
class SharedCatalog extends InMemoryRowLevelOperationTableCatalog {
  override protected val tables: util.Map[Identifier, Table] = SharedCatalog.tables
}

object SharedCatalog {
  private val tables = new ConcurrentHashMap[Identifier, Table]()
}
