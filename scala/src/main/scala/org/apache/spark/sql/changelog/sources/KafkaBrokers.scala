// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

import java.net.{InetSocketAddress, Socket, UnknownHostException}

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2

import org.apache.spark.sql.changelog.errors.ChangelogErrors

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
