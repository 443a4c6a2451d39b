// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.{LocalScan, Scan, ScanBuilder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String

/**
 * Tables `(id INT, city STRING, fare INT)` that have versions, and are read as of any of them. If the table
 * property `changes` is not `false`, the catalog gives what has changed between two. All sessions see
 * the same.
 */
class ChangesCatalog extends TableCatalog {
  import ChangesCatalog._

  private var catalog: String = _

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = catalog = name

  override def name(): String = catalog

  private def find(table: Identifier): History =
    Option(tables.get(table.name)).getOrElse(throw new NoSuchTableException(table))

  override def loadTable(table: Identifier): Table = find(table).at(find(table).last)

  override def loadTable(table: Identifier, version: String): Table =
    find(table).at(version.drop(1).toInt)

  override def loadChangelog(
      table: Identifier,
      context: ChangelogContext,
      options: CaseInsensitiveStringMap): Changelog = {
    val history = find(table)
    if (!history.givesChanges) throw new UnsupportedOperationException("no changes")
    val rows = context.range match {
      case range: ChangelogRange.VersionRange =>
        val Seq(from, until) =
          Seq(range.startingVersion, range.endingVersion.get).map(_.drop(1).toInt)
        assert(!range.startingBoundInclusive && range.endingBoundInclusive)
        history.changes(from, until)
      case _ => throw new UnsupportedOperationException("only ranges of versions")
    }
    new InMemoryChangelog(table.name, history.columns, rows, ChangelogProperties())
  }

  override def createTable(table: Identifier, info: TableInfo): Table = {
    val givesChanges = info.properties.asScala.get("changes").forall(_ != "false")
    tables.put(table.name, new History(table.name, info.columns, givesChanges))
    loadTable(table)
  }

  override def dropTable(table: Identifier): Boolean = tables.remove(table.name) != null

  override def listTables(namespace: Array[String]): Array[Identifier] = Array.empty

  override def alterTable(table: Identifier, changes: TableChange*): Table =
    throw new UnsupportedOperationException("alterTable")

  override def renameTable(from: Identifier, to: Identifier): Unit =
    throw new UnsupportedOperationException("renameTable")
}

object ChangesCatalog {
  private val tables = new ConcurrentHashMap[String, History]()

  /** Commits changes such as `insert 1 Oslo 5`, which may be carried over. */
  def commit(table: String, changes: String*): Unit = tables.get(table).commit(changes)

  /** Forgets what has changed up to now. */
  def forgetChanges(table: String): Unit = tables.get(table).forget()

  private class History(name: String, val columns: Array[Column], val givesChanges: Boolean) {
    private val id = UUID.randomUUID.toString
    private var commits = Seq.empty[Seq[String]]
    private var forgotten = 0

    def last: Int = synchronized(commits.size)

    def commit(changes: Seq[String]): Unit = synchronized(commits :+= changes)

    def forget(): Unit = synchronized { forgotten = last }

    def changes(from: Int, until: Int): Seq[InternalRow] = synchronized {
      if (from < forgotten) throw new IllegalArgumentException(s"version $from is forgotten")
      for {
        version <- from + 1 to until
        change <- commits(version - 1)
      } yield {
        val Array(kind, rest) = change.split(" ", 2)
        val values = valuesOf(rest) :+ UTF8String.fromString(kind)
        InternalRow.fromSeq(values ++ Seq(version.toLong, version * 1000000L))
      }
    }

    def at(version: Int): Table = synchronized {
      val rows = commits.take(version).flatten.foldLeft(Seq.empty[String]) { (rows, change) =>
        val Array(kind, row) = change.split(" ", 2)
        if (kind == "delete" || kind == "update_preimage") rows.diff(Seq(row)) else rows :+ row
      }
      val values = rows.map(row => InternalRow.fromSeq(valuesOf(row)))
      new VersionOf(name, id, columns, s"v$version", values)
    }

    private def valuesOf(row: String): Seq[Any] = {
      val Array(number, city, fare) = row.split(' ')
      Seq(number.toInt, UTF8String.fromString(city), fare.toInt)
    }
  }

  private class VersionOf(
      override val name: String,
      override val id: String,
      override val columns: Array[Column],
      override val version: String,
      values: Seq[InternalRow])
      extends Table
      with SupportsRead {
    override def capabilities: util.Set[TableCapability] =
      util.EnumSet.of(TableCapability.BATCH_READ)

    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
      new ScanBuilder {
        override def build(): Scan = new LocalScan {
          override def readSchema: StructType = CatalogV2Util.v2ColumnsToStructType(columns)
          override def rows(): Array[InternalRow] = values.toArray
        }
      }
  }
}
