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

import org.apache.spark.sql.changelog.errors.ChangelogErrors
import org.apache.spark.sql.changelog.sources.snapshots.SnapshotSource
import org.apache.spark.sql.changelog.sources.tables.{TableCopies, TableVersion}

/**
 * Refuses Kafka addresses at which nothing listens. Kafka's own clients wait a minute, and then name what they
 * waited for, without the address.
 */
private[changelog] object KafkaBrokers {

  /** The option with the addresses, of Spark's source and its sink. */
  val ServersOption = "kafka.bootstrap.servers"

  /** Checks the brokers of all topics that a query streams from. */
  def check(query: LogicalPlan): Unit = query
    .collectWithSubqueries {
      case stream: StreamingRelationV2 if stream.sourceName.equalsIgnoreCase("kafka") =>
        stream.extraOptions.get(ServersOption)
    }
    .filter(_ != null)
    .distinct
    .foreach(check(_, cause = null))

  /** Fails unless one of the brokers accepts connections. It is enough for Kafka to know one of them. */
  def check(servers: String, cause: Throwable): Unit = {
    val brokers = servers.split(',').toSeq.map(_.trim).filter(_.nonEmpty)
    // none is asked after the first that answers
    val failures = brokers.iterator.map(failure).takeWhile(_.isDefined).flatten.toSeq
    if (failures.size == brokers.size) {
      throw ChangelogErrors.kafkaNotReachable(
        ServersOption,
        servers,
        failures.mkString("; "),
        cause)
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

  /** As Kafka reads it: with or without a protocol. */
  private val Address = """(?:[\w.%-]*://)?\[?([\w:.%-]+)\]?:(\d{1,5})""".r
  private val Patience = 5000
}

/**
 * What sources of ours keep beside a checkpoint, to tell what has come after an offset. They delete it when
 * they have come further.
 */
object SourceFiles {

  /**
   * What a source would need to go on from an offset, and no longer has.
   *
   * @param folder
   *   the source's own, in the checkpoint
   * @param offset
   *   as it has put it
   */
  def missing(files: FileSystem, folder: Path, offset: String): Option[Path] = {
    val names = namesIn(files, folder)
    val needed = TableVersion.keptFor(offset, names).orElse(SnapshotSource.keptFor(offset, names))
    needed.filterNot(names).map(new Path(folder, _))
  }

  /**
   * Lets a throw-away query read up to an offset what a source has kept. Copies of tables are read where they
   * are, and stay there until what is given is closed; all else is little, and copied.
   *
   * @param folder
   *   the source's own, in the checkpoint
   * @param into
   *   the one in that of the throw-away query
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
