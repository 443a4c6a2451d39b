// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.io.Closeable
import java.net.{InetSocketAddress, Socket, UnknownHostException}

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FileUtil, Path}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2

import org.apache.spark.sql.changelog.errors.ChangelogErrors.runtime
import org.apache.spark.sql.changelog.errors.Credentials
import org.apache.spark.sql.changelog.sources.snapshots.SnapshotSource
import org.apache.spark.sql.changelog.sources.tables.{TableCopies, TableVersion}

/**
 * Rejects unreachable Kafka addresses early. Kafka's own clients time out after a minute, with an
 * error without the address.
 */
private[changelog] object KafkaBrokers {

  /** The option with the addresses, for Spark's source and sink. */
  val ServersOption = "kafka.bootstrap.servers"

  /** Checks the brokers of all topics that a query reads as streams, before a start or after a failure. */
  def check(query: LogicalPlan, cause: Throwable = null): Unit = query
    .collectWithSubqueries {
      case stream: StreamingRelationV2 if stream.sourceName.equalsIgnoreCase("kafka") =>
        stream.extraOptions.get(ServersOption)
    }
    .filter(_ != null)
    .distinct
    .foreach(check(_, cause))

  /**
   * Fails unless one of the brokers accepts connections. Kafka needs only one reachable broker.
   */
  def check(servers: String, cause: Throwable): Unit = {
    val brokers = servers.split(',').toSeq.map(_.trim).filter(_.nonEmpty)
    // The iterator stops at the first reachable broker.
    val failures = brokers.iterator.map(failure).takeWhile(_.isDefined).flatten.toSeq
    if (failures.size == brokers.size) {
      throw runtime(
        "CHANGELOG_KAFKA_NOT_REACHABLE",
        cause,
        "option" -> ServersOption,
        "servers" -> Credentials.removed(servers),
        "reason" -> Credentials.removed(failures.mkString("; ")))
    }
  }

  private def failure(broker: String): Option[String] = broker match {
    case Address(host, port) =>
      try
        Using.resource(new Socket) { socket =>
          socket.connect(new InetSocketAddress(host, port.toInt), Patience)
          None
        }
      catch {
        case _: UnknownHostException => Some(s"$broker: unknown host")
        case NonFatal(error) => Some(s"$broker: ${error.getMessage}")
      }
    case _ => Some(s"$broker: not of the form host:port")
  }

  /** An address in Kafka's format, with an optional protocol. */
  private val Address = """(?:[\w.%-]*://)?\[?([\w:.%-]+)\]?:(\d{1,5})""".r
  private val Patience = 5000
}

/**
 * SourceFiles: the files of this extension's sources beside a checkpoint, with the basis for
 * changes after an offset. A source deletes the files once a later batch is done.
 */
object SourceFiles {

  /**
   * Returns the missing file that a source needs to continue from an offset, if any.
   *
   * @param folder
   *   the source's folder in the checkpoint
   * @param offset
   *   the offset in the source's format
   */
  def missing(files: FileSystem, folder: Path, offset: String): Option[Path] = {
    val names = namesIn(files, folder)
    val needed = TableVersion.keptFor(offset, names).orElse(SnapshotSource.keptFor(offset, names))
    needed.filterNot(names).map(new Path(folder, _))
  }

  /**
   * Makes a source's files up to an offset available to a temporary query. Copies of tables stay
   * in place, and are kept until the result is closed. Small files are copied.
   *
   * @param folder
   *   the source's folder in the checkpoint
   * @param into
   *   the source's folder in the checkpoint of the temporary query
   */
  def lend(
      folder: Path,
      offset: Option[String],
      into: Path,
      hadoopConf: Configuration): Option[Closeable] = {
    val files = folder.getFileSystem(hadoopConf)
    val names = namesIn(files, folder)
    offset.flatMap(TableVersion.keptFor(_, names)).filter(TableCopies.isNamedBy) match {
      case Some(version) => Some(TableCopies.lend(folder, version, into, hadoopConf))
      case None =>
        if (names.nonEmpty) FileUtil.copy(files, folder, files, into, false, hadoopConf)
        None
    }
  }

  private def namesIn(files: FileSystem, folder: Path): Set[String] =
    if (files.exists(folder)) files.listStatus(folder).map(_.getPath.getName).toSet
    else Set.empty
}
