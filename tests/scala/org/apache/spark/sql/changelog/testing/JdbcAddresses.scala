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

  /** Addresses with a secret, of databases in rarer forms and of other stores. */
  def guardedRarely(secret: String): Seq[String] = Seq(
    s"jdbc:postgresql://db.example/shop?ssl=true&sslpassword=$secret",
    s"jdbc:mysql://db.example/shop?user=tester&password1=a&password2=$secret",
    s"jdbc:mysql://address=(host=db.example)(user=tester)(password = $secret)/shop",
    s"jdbc:sqlserver://db.example;database=shop;user=tester;pwd=$secret",
    s"jdbc:sqlserver://db.example;database=shop;accessToken=$secret",
    s"jdbc:sqlserver://db.example;KeyVaultProviderClientKey=$secret",
    s"""jdbc:oracle:thin:"tester"/"p/@$secret"@db.example:1521/shop""",
    s"jdbc:oracle:oci:tester/$secret@(DESCRIPTION=(ADDRESS=(HOST=db.example)(PORT=1521)))",
    s"jdbc:snowflake://db.example/?user=tester&private_key_pwd=$secret",
    s"jdbc:redshift:iam://db.example/shop?SecretAccessKey=$secret&Region=x",
    s"s3a://AKIA:$secret@db.example/rides",
    s"s3a://AKIA:a/b$secret@db.example/rides",
    s"https://tester:$secret@db.example:8081/subjects",
    s"https://db.example/rides?sv=2024&sig=$secret",
    s"https://db.example/rides?X-Amz-Credential=$secret&X-Amz-Signature=$secret",
    s"https://db.example/rides?X-Amz-Security-Token=$secret")

  /** Addresses without a secret, which are kept to the letter. */
  val open: Seq[String] = Seq(
    "jdbc:postgresql://db.example:5432/shop?ssl=true&sslmode=require",
    "jdbc:sqlserver://db.example:1433;databaseName=shop;encrypt=true",
    "jdbc:oracle:thin:@//db.example:1521/shop",
    "SELECT id, user_id, token_count FROM rides WHERE note = 'a@b' AND at > 3",
    "s3a://db.example/rides/a@b/day=1",
    "hdfs://db.example:8020/rides/a@b",
    "file:/rides/a:b@c",
    "rides,other-rides")
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
