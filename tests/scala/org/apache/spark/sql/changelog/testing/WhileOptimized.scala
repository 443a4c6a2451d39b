// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.concurrent.atomic.AtomicReference

import scala.util.Try

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** The extension of sessions in which something can be done while a query is optimized that reads a table. */
class WhileOptimized extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectOptimizerRule(_ => WhileOptimized.Meanwhile)
}

object WhileOptimized {
  private val next = new AtomicReference[Option[Once]](None)

  private case class Once(folder: String, index: String, something: () => Any)

  /** The configuration of a session beside Delta's. */
  val conf: Map[String, String] = ChangelogSession.deltaConfWith(classOf[WhileOptimized])

  /** Does something, in another thread, as soon as a query reads the table in a folder of that name. */
  def once(folder: String)(something: => Any): Unit =
    next.set(Some(Once(folder, "TahoeLogFileIndex", () => something)))

  /** The same, as soon as a statement of Delta's that changes the table looks for the rows that it changes. */
  def onceChanged(folder: String)(something: => Any): Unit =
    next.set(Some(Once(folder, "TahoeBatchFileIndex", () => something)))

  /** Whether it has been done. */
  def isDone: Boolean = next.get.isEmpty

  def never(): Unit = next.set(None)

  private object Meanwhile extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      next.get.filter(reads(plan, _)).foreach { once =>
        next.set(None)
        val outcome = new AtomicReference[Try[Any]]
        val thread = new Thread(() => outcome.set(Try(once.something())))
        thread.start()
        thread.join()
        outcome.get.get
      }
      plan
    }

    private def reads(plan: LogicalPlan, once: Once) = plan.exists {
      case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
        files.location.getClass.getSimpleName == once.index &&
        files.location.rootPaths.exists(_.getName == once.folder)
      case _ => false
    }
  }
}
