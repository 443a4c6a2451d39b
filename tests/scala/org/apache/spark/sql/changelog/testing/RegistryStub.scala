// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.net.InetSocketAddress
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64
import java.util.concurrent.atomic.AtomicInteger

import com.fasterxml.jackson.databind.ObjectMapper
import com.sun.net.httpserver.{HttpExchange, HttpServer}
import org.apache.avro.Schema
import org.sparkproject.spark_core.protobuf.DescriptorProtos.FileDescriptorProto

/** A registry on this machine that knows the schemas given to it. */
final class RegistryStub {
  @volatile var schemas: Map[Int, (String, String)] = Map.empty
  @volatile var references: Map[Int, Seq[(String, String)]] = Map.empty
  @volatile var authorization: Option[String] = None
  val requests = new AtomicInteger
  private val server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0)
  server.createContext("/schemas/ids/", answer(_, _.split('/').last))
  server.createContext(
    "/subjects/",
    exchange =>
      if (exchange.getRequestMethod == "POST") register(exchange)
      else answer(exchange, _.split('/')(2).stripPrefix("subject of ")))
  server.start()

  /** Answers as Confluent's does: the schemas of Protobuf as base64 only if asked for. */
  private def answer(exchange: HttpExchange, idIn: String => String): Unit = {
    requests.incrementAndGet()
    val id = idIn(exchange.getRequestURI.getPath).toInt
    val isKnown =
      authorization.forall(_ == exchange.getRequestHeaders.getFirst("Authorization"))
    val (status, body) = schemas.get(id) match {
      case _ if !isKnown => (401, """{"error_code":401,"message":"Unauthorized"}""")
      case None => (404, """{"error_code":40403,"message":"Schema not found"}""")
      case Some((kind, schema)) =>
        val isAsText =
          kind == "PROTOBUF" && exchange.getRequestURI.getQuery != "format=serialized"
        val answer = new ObjectMapper()
          .createObjectNode()
          .put("schema", if (isAsText) "syntax = \"proto3\";" else schema)
        if (kind != "AVRO") answer.put("schemaType", kind)
        references.get(id).foreach { files =>
          val list = answer.putArray("references")
          files.foreach { case (name, subject) =>
            list.addObject().put("name", name).put("subject", subject).put("version", 1)
          }
        }
        (200, answer.toString)
    }
    val bytes = body.getBytes(UTF_8)
    exchange.sendResponseHeaders(status, bytes.length.toLong)
    exchange.getResponseBody.write(bytes)
    exchange.close()
  }

  /** The registered schemas of each subject. */
  @volatile var subjects: Map[String, Seq[Int]] = Map.empty

  /** Gives an equal schema the id that it has. */
  private def register(exchange: HttpExchange): Unit = synchronized {
    requests.incrementAndGet()
    val schema = new ObjectMapper().readTree(exchange.getRequestBody).path("schema").asText
    val subject = exchange.getRequestURI.getPath.split('/')(2)
    val isKnown =
      authorization.forall(_ == exchange.getRequestHeaders.getFirst("Authorization"))
    val (status, body) =
      if (!isKnown) (401, """{"error_code":401,"message":"Unauthorized"}""")
      else {
        val id = schemas
          .collectFirst { case (id, ("AVRO", `schema`)) => id }
          .getOrElse(add("AVRO", schema))
        subjects += subject -> (subjects.getOrElse(subject, Nil) :+ id).distinct
        (200, s"""{"id":$id}""")
      }
    val bytes = body.getBytes(UTF_8)
    exchange.sendResponseHeaders(status, bytes.length.toLong)
    exchange.getResponseBody.write(bytes)
    exchange.close()
  }

  def url: String = s"http://127.0.0.1:${server.getAddress.getPort}"

  def add(schema: Schema): Int = add("AVRO", schema.toString)

  /** Adds a file of Protobuf, with the names and ids of the files that it imports. */
  def add(file: FileDescriptorProto, imports: (String, Int)*): Int = synchronized {
    // a registry's files have the name "default", and are imported by another
    val bytes = file.toBuilder.setName("default").build().toByteArray
    val id = add("PROTOBUF", Base64.getEncoder.encodeToString(bytes))
    references += id -> imports.map { case (name, of) => name -> s"subject of $of" }
    id
  }

  def add(kind: String, schema: String): Int = synchronized {
    val id = schemas.size + 1
    schemas += id -> (kind -> schema)
    id
  }

  def stop(): Unit = server.stop(0)
}
