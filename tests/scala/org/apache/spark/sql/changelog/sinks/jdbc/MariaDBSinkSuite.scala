// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.jdbc

import org.apache.spark.sql.changelog.testing.Services

class MariaDBSinkSuite extends JdbcSinkTests {
  override protected lazy val address: Map[String, String] = Services.mariadb()
}
