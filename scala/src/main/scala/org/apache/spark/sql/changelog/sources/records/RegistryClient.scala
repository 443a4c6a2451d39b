// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.records

import java.io.IOException
import java.net.URI
import java.net.http.HttpRequest.BodyPublishers
import java.net.http.HttpResponse.BodyHandlers
import java.net.http.{HttpClient, HttpRequest}
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.Base64

import scala.util.Try

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * RegistryClient: asks a schema registry with Confluent's API.
 *
 * @param password
 *   `user:password`, or a token without a colon
 * @param failed
 *   returns the error of a request, from the reason and the cause
 */
private[changelog] class RegistryClient(
    url: String,
    password: Option[String],
    failed: (String, Throwable) => Throwable) {
  import RegistryClient._

  def get(path: String): JsonNode = send(request(path).GET())

  def post(path: String, body: String): JsonNode =
    send(request(path).header("Content-Type", Json).POST(BodyPublishers.ofString(body)))

  private def request(path: String): HttpRequest.Builder = {
    val request = HttpRequest
      .newBuilder(URI.create(s"${url.stripSuffix("/")}/$path"))
      .header("Accept", Json)
      .timeout(Patience)
    password.foreach { password =>
      val encoded = Base64.getEncoder.encodeToString(password.getBytes(UTF_8))
      val isToken = !password.contains(':')
      request.header("Authorization", if (isToken) s"Bearer $password" else s"Basic $encoded")
    }
    request
  }

  private def send(request: HttpRequest.Builder): JsonNode = {
    val response =
      try client.send(request.build(), BodyHandlers.ofString())
      catch { case error: IOException => throw failed(error.toString, error) }
    if (response.statusCode != 200) {
      throw failed(
        s"the registry answers ${response.statusCode}: ${response.body.take(200)}",
        null)
    }
    try new ObjectMapper().readTree(response.body)
    catch { case error: IOException => throw failed("the answer is not JSON", error) }
  }
}

private[changelog] object RegistryClient {
  private val Json = "application/vnd.schemaregistry.v1+json"
  private val Patience = Duration.ofSeconds(30)

  private lazy val client = HttpClient
    .newBuilder()
    .version(HttpClient.Version.HTTP_1_1)
    .connectTimeout(Patience)
    .build()

  /** Returns the mistake in an address, if any: the text to show for it. An address takes no password. */
  def mistakeIn(url: String): Option[String] =
    Try(URI.create(url)).filter(_.getHost != null) match {
      case parsed if parsed.isFailure => Some(s"'$url'")
      case parsed => Option(parsed.get.getUserInfo).map(_ => "an address with a password")
    }
}
