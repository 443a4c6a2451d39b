// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

/** Removes users and passwords from texts to store or show. */
private[changelog] object Credentials {
  private val secrets =
    "(?:[\\w.-]*passw(?:or)?d\\d?|[\\w.-]*pwd|[\\w.-]*secret|[\\w.-]*token|" +
      "[\\w.-]*(?:secret|private|access|account|client)_?\\w*key|sig|x-amz-(?:signature|credential))"
  private val names = s"(?:user|username|uid|$secrets)"

  // jdbc:oracle:thin:user/password@host
  private val oracle = "(?i)(jdbc:oracle:\\w+:)[^\\s(]*@"
  // a password may contain an @
  private val jdbc = "(?i)(jdbc:[^\\s?;]*//)[^\\s?;]*@"
  // a password may contain a /, and a / follows a port
  private val authority = "(?<=//)[^\\s/@:]+:(?!\\d+/)[^\\s@]*@"

  private val patterns = Seq(
    oracle -> "$1@",
    jdbc -> "$1",
    authority -> "",
    "//[^/@]*@" -> "//",
    s"(?i)([?&;:]$names\\s*=)(\\{[^}]*\\}|[^&;]*)" -> "$1",
    // jdbc:mysql://(host=db,user=...,password=...)
    s"(?i)([(,]$names\\s*=)[^),]*" -> "$1")

  /** Patterns of secrets, apart from user names. The last is a setting of Kafka's JAAS. */
  private val revealing = Seq(
    "(?i)jdbc:oracle:\\w+:[^\\s(/]+/[^\\s(]*@",
    "(?i)jdbc:[^\\s?;]*//[^\\s?;:@]*:[^\\s?;]*@",
    authority,
    s"(?i)[?&;:(,]$secrets\\s*=",
    s"(?i)\\s$secrets\\s*=\\s*[\"']",
    "-----BEGIN [\\w ]*PRIVATE KEY").map(_.r)

  /** Returns an address without user and password. */
  def removed(address: String): String = patterns.foldLeft(address) {
    case (text, (pattern, replacement)) => text.replaceAll(pattern, replacement)
  }

  /** Returns whether an address or a client setting contains a password, a token or a key. */
  def hasSecret(text: String): Boolean = revealing.exists(_.findFirstIn(text).isDefined)
}
