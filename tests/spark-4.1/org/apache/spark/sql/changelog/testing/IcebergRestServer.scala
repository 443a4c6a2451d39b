// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.net.{InetAddress, InetSocketAddress, URLDecoder}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.Executors

import scala.reflect.ClassTag
import scala.util.Using

import com.sun.net.httpserver.{HttpExchange, HttpServer}
import org.apache.hadoop.conf.Configuration
import org.apache.iceberg.catalog.{Namespace, TableIdentifier}
import org.apache.iceberg.exceptions.{
  AlreadyExistsException, CommitFailedException, NoSuchNamespaceException, NoSuchTableException
}
import org.apache.iceberg.hadoop.HadoopCatalog
import org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode
import org.apache.iceberg.rest.requests._
import org.apache.iceberg.rest.responses.{ConfigResponse, ErrorResponse}
import org.apache.iceberg.rest.{CatalogHandlers, RESTSerializers}
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect.Visibility
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.{
  DeserializationFeature, ObjectMapper, PropertyNamingStrategies
}

/** A REST catalog of Iceberg on loopback, with tables in folders below `home`, and a folder for each namespace. */
class IcebergRestServer(home: File) {
  private val catalog = new HadoopCatalog(new Configuration(), home.getPath)
  private val threads = Executors.newCachedThreadPool()

  private val json = new ObjectMapper()
    .setVisibility(PropertyAccessor.FIELD, Visibility.ANY)
    .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)
    .setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy)
  RESTSerializers.registerAll(json)

  private val server =
    HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress, 0), 0)
  server.createContext("/", (exchange: HttpExchange) => answer(exchange))
  server.setExecutor(threads)
  server.start()

  def url: String = s"http://localhost:${server.getAddress.getPort}"

  def stop(): Unit = {
    server.stop(0)
    threads.shutdown()
  }

  private def answer(exchange: HttpExchange): Unit = {
    val (status, response) =
      try 200 -> handle(exchange)
      catch {
        case error: RuntimeException =>
          val status = error match {
            case _: NoSuchTableException | _: NoSuchNamespaceException => 404
            case _: AlreadyExistsException | _: CommitFailedException => 409
            case _ => 500
          }
          val told = ErrorResponse
            .builder()
            .responseCode(status)
            .withType(error.getClass.getSimpleName)
            .withMessage(String.valueOf(error.getMessage))
            .build()
          status -> told
      }
    Using.resource(exchange) { exchange =>
      if (response.isInstanceOf[Unit] || exchange.getRequestMethod == "HEAD") {
        exchange.sendResponseHeaders(if (status == 200) 204 else status, -1)
      } else {
        val bytes = json.writeValueAsBytes(response)
        exchange.getResponseHeaders.add("Content-Type", "application/json")
        exchange.sendResponseHeaders(status, bytes.length.toLong)
        exchange.getResponseBody.write(bytes)
      }
    }
  }

  private def handle(exchange: HttpExchange): Any = {
    def read[T](implicit kind: ClassTag[T]): T = json.readValue(
      exchange.getRequestBody.readAllBytes(),
      kind.runtimeClass.asInstanceOf[Class[T]])
    val parts = exchange.getRequestURI.getRawPath.split('/').toList.filter(_.nonEmpty)
    def space(name: String) = Namespace.of(name)
    (exchange.getRequestMethod, parts.map(URLDecoder.decode(_, UTF_8))) match {
      case ("GET", List("v1", "config")) => ConfigResponse.builder().build()
      case ("GET", List("v1", "namespaces")) =>
        CatalogHandlers.listNamespaces(catalog, Namespace.empty())
      case ("GET" | "HEAD", List("v1", "namespaces", in)) =>
        CatalogHandlers.loadNamespace(catalog, space(in))
      case ("GET", List("v1", "namespaces", in, "tables")) =>
        CatalogHandlers.listTables(catalog, space(in))
      case ("POST", List("v1", "namespaces", in, "tables")) =>
        val request = read[CreateTableRequest]
        if (request.stageCreate)
          CatalogHandlers.stageTableCreate(catalog, space(in), request)
        else CatalogHandlers.createTable(catalog, space(in), request)
      case ("POST", List("v1", "namespaces", in, "register")) =>
        CatalogHandlers.registerTable(catalog, space(in), read[RegisterTableRequest])
      case ("POST", List("v1", "namespaces", _, "tables", _, "metrics")) => ()
      case (method, List("v1", "namespaces", in, "tables", name)) =>
        val table = TableIdentifier.of(space(in), name)
        method match {
          case "GET" | "HEAD" => CatalogHandlers.loadTable(catalog, table, SnapshotMode.ALL)
          case "POST" => CatalogHandlers.updateTable(catalog, table, read[UpdateTableRequest])
          case "DELETE" => CatalogHandlers.dropTable(catalog, table)
        }
      case other => throw new UnsupportedOperationException(other.toString)
    }
  }
}
