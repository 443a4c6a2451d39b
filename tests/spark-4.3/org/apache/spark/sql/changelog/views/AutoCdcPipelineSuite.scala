// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.pipelines.graph.{AutoCdcFlow, DataflowGraph}

import org.apache.spark.sql.changelog.testing.{ChangelogSession, Pipelines}

/** Statements with AUTO CDC in a pipeline, which begin like those for views, are Spark's. */
class AutoCdcPipelineSuite extends AnyFunSuite with ChangelogSession {

  private val statements =
    """CREATE STREAMING TABLE first
      |FLOW AUTO CDC FROM STREAM feed KEYS (k) SEQUENCE BY n STORED AS SCD TYPE 1;
      |CREATE STREAMING TABLE second;
      |CREATE FLOW into_second AS AUTO CDC INTO second FROM STREAM feed KEYS (k)
      |APPLY AS DELETE WHEN gone SEQUENCE BY n COLUMNS * EXCEPT (gone) STORED AS SCD TYPE 2;""".stripMargin

  /** The flows as text, without what differs by session. */
  private def flows(graph: DataflowGraph): Seq[(String, String, String)] =
    graph.flows
      .map {
        case flow: AutoCdcFlow =>
          (flow.identifier.table, flow.destinationIdentifier.table, flow.changeArgs.toString)
        case other => fail(s"$other is no flow of AUTO CDC")
      }
      .sortBy(_._1)

  test("a pipeline has the same flows with the extension and without it") {
    val ours = Pipelines.graph(spark, statements)
    assert(ours.tables.map(_.identifier.table).toSet == Set("first", "second"))
    val found = flows(ours)
    assert(found.map(_._1) == Seq("first", "into_second"))
    ChangelogSession.end(spark)
    val stock = ChangelogSession.start(extension = false)
    assert(found == flows(Pipelines.graph(stock, statements)))
  }
}
