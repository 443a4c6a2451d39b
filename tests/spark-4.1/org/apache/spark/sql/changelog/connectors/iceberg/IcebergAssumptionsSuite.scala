// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.iceberg

import java.lang.reflect.InvocationTargetException
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.IcebergSession

/** How Iceberg is used, and by what code alone. */
class IcebergAssumptionsSuite extends AnyFunSuite with IcebergSession {

  test("a jar whose class loader does not find Iceberg says how to load both") {
    run("CREATE TABLE ice.db.linked (id INT) USING iceberg")
    val relation = spark.table("ice.db.linked").queryExecution.analyzed.collectLeaves().head
    assert(IcebergRelation.unapply(relation).nonEmpty)
    val apart = new WithoutIceberg(getClass.getClassLoader)
      .loadClass(IcebergRelation.getClass.getName)
    val again = apart.getField("MODULE$").get(null)
    val failed = intercept[InvocationTargetException] {
      apart.getMethod("unapply", classOf[LogicalPlan]).invoke(again, relation)
    }
    failed.getCause match {
      case named: SparkThrowable => assert(named.getCondition == "CHANGELOG_ICEBERG_NOT_LINKED")
      case other => fail(other)
    }
  }

  test("no other package knows Iceberg, and one object is linked with it") {
    val home = Paths.get(sys.props("spark.changelog.test.home"))
    val known = "apache\\.iceberg|sql\\.iceberg".r
    UsedPackages.sources(home.resolve("scala/src/main")).foreach { file =>
      val isInside = file.getParent.endsWith("connectors/iceberg")
      assert(isInside || known.findFirstIn(Files.readString(file)).isEmpty, file)
    }
    val classes =
      Paths.get(IcebergRelation.getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    val all = Files.walk(classes)
    val linked =
      try {
        val files = all.iterator.asScala.filter(_.toString.endsWith(".class")).toSeq
        files.filter(Files.readString(_, ISO_8859_1).contains("org/apache/iceberg/"))
      } finally all.close()
    assert(linked.nonEmpty && linked.forall(isPlainCode), linked)
  }

  private def isPlainCode(file: Path): Boolean =
    file.getParent.endsWith("connectors/iceberg") &&
      file.getFileName.toString.matches("IcebergTables\\b.*")
}

/** Loads the classes of `connectors.iceberg` once more, and doesn't find those of Iceberg. */
private class WithoutIceberg(parent: ClassLoader) extends ClassLoader(parent) {
  private val linked = classOf[IcebergTable].getPackageName + "."

  override protected def loadClass(name: String, resolve: Boolean): Class[_] =
    if (name.startsWith("org.apache.iceberg.")) throw new ClassNotFoundException(name)
    else if (name.startsWith(linked)) {
      Option(findLoadedClass(name)).getOrElse {
        val file = parent.getResourceAsStream(name.replace('.', '/') + ".class")
        val bytes =
          try file.readAllBytes()
          finally file.close()
        defineClass(name, bytes, 0, bytes.length)
      }
    } else super.loadClass(name, resolve)
}
