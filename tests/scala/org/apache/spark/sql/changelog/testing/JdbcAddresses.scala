// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.sql.{Connection, Driver, DriverManager, DriverPropertyInfo}
import java.util.Properties
import java.util.logging.Logger

object JdbcAddresses {

  /** Addresses of databases with a password, in each place where one can be. */
  def guarded(password: String): Seq[String] = Seq(
    s"jdbc:postgresql://db.example:5432/shop?user=tester&password=$password",
    s"jdbc:mysql://tester:$password@db.example:3306/shop",
    s"jdbc:mysql://(host=db.example,port=3306,user=tester,password=$password)/shop",
    s"jdbc:mariadb://db.example:3306/shop?user=tester&password=$password&useSsl=true",
    s"jdbc:sqlserver://db.example:1433;databaseName=shop;user=tester;password={$password;};",
    s"jdbc:oracle:thin:tester/$password@//db.example:1521/shop",
    s"jdbc:oracle:thin:tester/p@$password@db.example:1521:shop",
    s"jdbc:db2://db.example:50000/shop:user=tester;password=$password;",
    s"jdbc:h2:mem:guarded;USER=tester;PASSWORD=$password")
}

/** Takes any address for that of the database `guarded` of H2. */
class StandInDriver extends Driver {
  override def connect(url: String, info: Properties): Connection =
    DriverManager.getConnection("jdbc:h2:mem:guarded", "tester", "0ption5ecret")
  override def acceptsURL(url: String): Boolean = true
  override def getPropertyInfo(url: String, info: Properties): Array[DriverPropertyInfo] =
    Array.empty
  override def getMajorVersion: Int = 1
  override def getMinorVersion: Int = 0
  override def jdbcCompliant: Boolean = false
  override def getParentLogger: Logger = Logger.getGlobal
}
