// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources.tables

import java.io.{File, FileNotFoundException}

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.types.StructType

import org.apache.spark.sql.changelog.testing.{ChangelogSession, QuickFileSystem}

class TableCopiesSuite extends AnyFunSuite with ChangelogSession {
  private val schema = StructType.fromDDL("id BIGINT")
  private lazy val hadoopConf = spark.sessionState.newHadoopConf()

  private class Fixture {
    val home: File = QuickFileSystem.temporaryDirectory()
    val folder = new Path(home.getPath, "sources/0")
    val other = new Path(home.getPath, "verify/sources/0")
    val copies = new TableCopies(spark, folder, schema)
    val lentTo = new TableCopies(spark, other, schema)

    /** Makes a version of so many rows. */
    def version(number: Long, rows: Long): Unit =
      copies.name(number, copies.write(spark.range(rows).toDF()))

    def lend(version: Long): java.io.Closeable =
      TableCopies.lend(folder, s"version-$version", other, hadoopConf)

    def files(prefix: String): Seq[String] =
      new File(folder.toString).list().toSeq.filter(_.startsWith(prefix)).sorted
  }

  test("a copy that is lent is read where it is, and stays until it is given back") {
    val fixture = new Fixture
    import fixture._
    (1L to 3L).foreach(number => version(number, number * 10))
    val loan = lend(1)
    copies.deleteBefore(3)
    copies.deleteUnnamed()
    assert(files("version-") == Seq("version-3"))
    assert(files("copy-").size == 2)
    assert(lentTo.rows(lentTo.named(1)).count() == 10)
    assert(new File(other.toString).list().toSeq == Seq("version-1"))
    // who has borrowed it deletes nothing of the owner's
    lentTo.deleteUnnamed()
    lentTo.deleteBefore(1)
    assert(copies.rows(copies.named(3)).count() == 30)
    loan.close()
    assert(files("lent-").isEmpty)
    copies.deleteUnnamed()
    assert(files("copy-").size == 1)
  }

  test("a version that is gone is not lent") {
    val fixture = new Fixture
    import fixture._
    (1L to 2L).foreach(number => version(number, number))
    copies.deleteBefore(2)
    intercept[FileNotFoundException](lend(1))
    assert(files("lent-").isEmpty)
  }

  test("a loan of a process that has ended is over after a day") {
    val fixture = new Fixture
    import fixture._
    (1L to 2L).foreach(number => version(number, number))
    lend(1)
    copies.deleteBefore(2)
    copies.deleteUnnamed()
    assert(files("copy-").size == 2)
    val aged = System.currentTimeMillis() - 25 * 3600 * 1000
    assert(new File(folder.toString, files("lent-").head).setLastModified(aged))
    copies.deleteUnnamed()
    assert(files("copy-").size == 1 && files("lent-").isEmpty)
  }
}
