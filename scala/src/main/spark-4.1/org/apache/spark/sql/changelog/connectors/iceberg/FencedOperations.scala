// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.iceberg

import org.apache.iceberg.encryption.EncryptionManager
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.iceberg.{
  BaseTable, HasTableOperations, Table => IcebergApi, TableMetadata, TableOperations, Transaction,
  Transactions
}

import org.apache.spark.sql.changelog.checkpoint.Fence

/**
 * FencedOperations: commits to an Iceberg table that check the fences of the thread. The check comes after the read of
 * the metadata that the commit replaces. The next holder of the fence adds a snapshot, and a catalog rejects commits
 * based on other metadata, or on another snapshot. Iceberg then repeats the commit, together with the check.
 */
private class FencedOperations(operations: TableOperations) extends TableOperations {

  override def commit(base: TableMetadata, metadata: TableMetadata): Unit = {
    Fence.check("commit")
    operations.commit(base, metadata)
  }

  override def current(): TableMetadata = operations.current()
  override def refresh(): TableMetadata = operations.refresh()
  override def io(): FileIO = operations.io()
  override def encryption(): EncryptionManager = operations.encryption()
  override def metadataFileLocation(name: String): String = operations.metadataFileLocation(name)
  override def locationProvider(): LocationProvider = operations.locationProvider()
  override def newSnapshotId(): Long = operations.newSnapshotId()
  override def requireStrictCleanup(): Boolean = operations.requireStrictCleanup()
  override def temp(uncommitted: TableMetadata): TableOperations = operations.temp(uncommitted)
}

private object FencedOperations {

  def of(table: IcebergApi): IcebergApi = new BaseTable(operationsOf(table), table.name)

  def begin(table: IcebergApi): Transaction =
    Transactions.newTransaction(table.name, operationsOf(table))

  private def operationsOf(table: IcebergApi): TableOperations = table match {
    case table: HasTableOperations => new FencedOperations(table.operations)
    case other => throw new IllegalStateException(s"the table ${other.name} has no commits")
  }
}
