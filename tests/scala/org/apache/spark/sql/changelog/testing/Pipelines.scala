// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.concurrent.ConcurrentLinkedQueue

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.pipelines.graph.{
  DataflowGraph, GraphRegistrationContext, PipelineUpdateContextImpl, SqlGraphRegistrationContext
}

/** Spark's own declarative pipelines. */
object Pipelines {

  /** Returns the tables and flows of SQL statements. */
  def graph(
      session: SparkSession,
      statements: String,
      catalog: String = "spark_catalog",
      namespace: String = "default"): DataflowGraph = {
    val context = new GraphRegistrationContext(catalog, namespace, Map.empty)
    new SqlGraphRegistrationContext(context).processSqlFile(statements, "pipeline.sql", session)
    context.toDataflowGraph
  }

  /** Runs the flows until they have read all rows. Fails with the first error. */
  def run(session: SparkSession, graph: DataflowGraph, storage: String): Unit = {
    SparkSession.setActiveSession(session)
    val failures = new ConcurrentLinkedQueue[Throwable]
    val update = new PipelineUpdateContextImpl(
      graph,
      event => event.error.foreach(failures.add),
      storageRoot = storage)
    update.pipelineExecution.runPipeline()
    update.pipelineExecution.awaitCompletion()
    if (!failures.isEmpty) throw new AssertionError(failures.toString, failures.peek())
  }
}
