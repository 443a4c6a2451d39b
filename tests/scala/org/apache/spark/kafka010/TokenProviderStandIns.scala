// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.kafka010

import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkConf

/*
 * What Spark's Kafka connector calls of `spark-token-provider-kafka-0-10`, which not every mirror
 * of the package registry serves. Tests use no delegation tokens, so there is nothing to provide.
 */

case class KafkaTokenClusterConf(identifier: String)

case class KafkaConfigUpdater(module: String, kafkaParams: Map[String, Object]) {
  private val updated = new java.util.HashMap[String, Object](kafkaParams.asJava)

  def set(key: String, value: Object): this.type = {
    updated.put(key, value)
    this
  }

  def setIfUnset(key: String, value: Object): this.type = {
    updated.putIfAbsent(key, value)
    this
  }

  def setAuthenticationConfigIfNeeded(): this.type = this

  def setAuthenticationConfigIfNeeded(cluster: Option[KafkaTokenClusterConf]): this.type = this

  def build(): JavaMap[String, Object] = updated
}

object KafkaRedactionUtil {
  def redactParams(params: Seq[(String, Object)]): Seq[(String, String)] =
    params.map { case (key, _) => key -> "" }
}

object KafkaTokenUtil {
  def findMatchingTokenClusterConfig(
      conf: SparkConf,
      servers: String): Option[KafkaTokenClusterConf] = None

  def needTokenUpdate(
      params: JavaMap[String, Object],
      cluster: Option[KafkaTokenClusterConf]): Boolean = false
}
