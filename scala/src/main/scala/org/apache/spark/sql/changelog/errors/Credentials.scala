// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.errors

/** Keeps users and passwords out of what is written down or shown. */
private[changelog] object Credentials {
  private val names = "(?:user|username|uid|[\\w.]*password|pwd|[\\w.]*secret|[\\w.]*token)"

  private val patterns = Seq(
    // jdbc:oracle:thin:user/password@host
    "(?i)(jdbc:oracle:\\w+:)[^\\s(]*@" -> "$1@",
    // a password may hold an @
    "(?i)(jdbc:[^\\s?;]*//)[^\\s?;]*@" -> "$1",
    "//[^/@]*@" -> "//",
    s"(?i)([?&;:]$names=)(\\{[^}]*\\}|[^&;]*)" -> "$1",
    // jdbc:mysql://(host=db,user=...,password=...)
    s"(?i)([(,]$names=)[^),]*" -> "$1")

  /** An address without the user and the password that it may name. */
  def removed(address: String): String = patterns.foldLeft(address) {
    case (text, (pattern, replacement)) => text.replaceAll(pattern, replacement)
  }
}
