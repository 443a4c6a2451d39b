// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.connectors.iceberg

import java.lang.reflect.InvocationTargetException
import java.nio.file.Path

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.IcebergSession

/** How Iceberg is used, and by what code alone. */
class IcebergAssumptionsSuite extends AnyFunSuite with IcebergSession {
  private val connector = new ConnectorPackage(classOf[IcebergTable], "org.apache.iceberg.")

  test("a jar whose class loader does not find Iceberg says how to load both") {
    run("CREATE TABLE ice.db.linked (id INT) USING iceberg")
    val relation = spark.table("ice.db.linked").queryExecution.analyzed.collectLeaves().head
    assert(IcebergRelation.unapply(relation).nonEmpty)
    val apart = connector.loadWithoutLibrary(IcebergRelation.getClass)
    val again = apart.getField("MODULE$").get(null)
    val failed = intercept[InvocationTargetException] {
      apart.getMethod("unapply", classOf[LogicalPlan]).invoke(again, relation)
    }
    failed.getCause match {
      case named: SparkThrowable => assert(named.getCondition == "CHANGELOG_ICEBERG_NOT_LINKED")
      case other => fail(other)
    }
  }

  test("no other package knows Iceberg, and one object and its commits are linked with it") {
    val outside = connector.sourcesOutside("apache\\.iceberg|sql\\.iceberg".r)
    assert(outside.isEmpty, outside)
    val linked = connector.linked
    assert(linked.nonEmpty && linked.forall(isPlainCode), linked)
  }

  private def isPlainCode(file: Path): Boolean =
    connector.has(file, "(IcebergTables|FencedOperations)\\b.*")
}
