// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.lang.ProcessBuilder.Redirect
import java.nio.file.Files
import java.util.Properties

import scala.util.Using

import org.scalatest.Assertions

/**
 * Debezium in a process of its own, which sends the changes of tables in PostgreSQL to Kafka.
 *
 * @param prefix
 *   what its topics begin with
 */
class DebeziumConnector(
    prefix: String,
    postgres: Map[String, String],
    kafka: Map[String, String],
    tables: Seq[String],
    settings: Map[String, String] = Map.empty)
    extends Assertions {
  private val home = new File(sys.props("spark.changelog.test.home"))
  private val folder = QuickFileSystem.temporaryDirectory()
  private val log = new File(folder, "debezium.log")

  private val properties = new Properties()
  (Map(
    "name" -> prefix,
    "connector.class" -> "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name" -> "pgoutput",
    "publication.autocreate.mode" -> "filtered",
    "database.hostname" -> postgres("host"),
    "database.port" -> postgres("port"),
    "database.user" -> postgres("user"),
    "database.password" -> postgres("password"),
    "database.dbname" -> postgres("database"),
    "topic.prefix" -> prefix,
    "table.include.list" -> tables.mkString(","),
    "offset.storage" -> "org.apache.kafka.connect.storage.FileOffsetBackingStore",
    "offset.storage.file.filename" -> new File(folder, "offsets").getPath,
    "poll.interval.ms" -> "50",
    "bootstrap.servers" -> kafka("bootstrap")) ++ settings).foreach { case (name, value) =>
    properties.setProperty(name, value)
  }
  private val file = new File(folder, "debezium.properties")

  private var process: Option[Process] = None

  def start(): Unit = {
    Using.resource(Files.newBufferedWriter(file.toPath))(properties.store(_, ""))
    val builder = new ProcessBuilder(new File(home, "dev/debezium").getPath, file.getPath)
    // our end of its input is closed when this process ends, in whatever way
    process = Some(
      builder
        .redirectErrorStream(true)
        .redirectOutput(Redirect.appendTo(log))
        .start())
  }

  /** Ends it at once, so that it forgets what it sent last and sends it again. */
  def kill(): Unit = process.foreach { running =>
    running.destroyForcibly()
    running.waitFor()
    process = None
  }

  def stop(): Unit = process.foreach { running =>
    running.getOutputStream.close()
    running.waitFor()
    process = None
  }

  /** Fails if it ended by itself. */
  def check(): Unit =
    process
      .filterNot(_.isAlive)
      .foreach(_ => fail(s"Debezium ended: ${Files.readString(log.toPath)}"))
}
