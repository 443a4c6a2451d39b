// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.lang.ProcessBuilder.Redirect

import scala.collection.mutable

import org.json4s._
import org.json4s.jackson.JsonMethods
import org.scalatest.Assertions

/**
 * Real databases and a real broker, started by `dev/services` when a test first asks for one, and
 * ended with this process. A test that asks for one this machine can't have is cancelled; one that
 * could be had and does not start is a failure.
 */
object Services extends Assertions {
  private val started = mutable.Map.empty[String, Either[String, Map[String, String]]]

  def postgres(): Map[String, String] = address("postgres")

  def mariadb(): Map[String, String] = address("mariadb")

  def mysql(): Map[String, String] = address("mysql")

  def kafka(): Map[String, String] = address("kafka")

  def s3(): Map[String, String] = address("s3")

  private def address(name: String): Map[String, String] = synchronized {
    started.getOrElseUpdate(name, start(name)) match {
      case Right(address) => address
      case Left(reason) => cancel(s"$name is needed: $reason")
    }
  }

  private def start(name: String): Either[String, Map[String, String]] =
    addressFrom(name, launch(name))

  private def launch(name: String): Process = {
    val home = new File(sys.props("spark.changelog.test.home"))
    val builder = new ProcessBuilder(new File(home, "dev/services").getPath, "run", name)
    // our end of its input is closed when this process ends, in whatever way
    builder.redirectError(Redirect.INHERIT).start()
  }

  private def addressFrom(name: String, process: Process): Either[String, Map[String, String]] =
    process.inputReader().readLine() match {
      case null => fail(s"$name did not start")
      case line =>
        val JObject(List((_, JObject(fields)))) = JsonMethods.parse(line): @unchecked
        val address = fields.map { case (field, value) => field -> value.values.toString }.toMap
        address.get("missing").toLeft(address)
    }

  /** A service for one suite, which can crash and return with its address and data. */
  class Own(name: String) extends AutoCloseable {
    private val process = launch(name)
    private val input = process.outputWriter()
    @volatile private var isAway = false

    val address: Map[String, String] = addressFrom(name, process) match {
      case Right(address) => address
      case Left(reason) => cancel(s"$name is needed: $reason")
    }

    def crash(): Unit = synchronized {
      tell("crash")
      isAway = true
    }

    /** Returns if it was away. */
    def restart(): Unit = synchronized {
      if (isAway) tell("restart")
      isAway = false
    }

    override def close(): Unit = input.close()

    private def tell(command: String): Unit = {
      input.write(s"$command\n")
      input.flush()
      assert(process.inputReader().readLine() == command)
      ()
    }
  }
}
