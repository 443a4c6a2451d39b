// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{SparkEnv, TaskContext}

/**
 * Makes tasks of streaming queries fail: below and above operators with state, and so between two of
 * them, and where rows are shuffled. Each task of each stage fails twice at most, each time at another
 * place, some before their first row and some after the last, when the operator below has committed.
 *
 * An extension of a session, for queries that are started while [[FailingTasks.On]] is set; its master
 * must allow three attempts, as `local[2,3]` does.
 */
class FailingTasks extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectColumnar(_ =>
      new ColumnarRule {
        override def postColumnarTransitions: Rule[SparkPlan] = plan => FailingTasks.insert(plan)
      })
}

object FailingTasks {

  /** The setting that lets tasks fail. */
  val On: Map[String, String] = Map("spark.changelog.tests.tasksFail" -> "true")

  /** How often a task has failed so far, in this process. */
  val count = new AtomicInteger

  /** What they fail with. */
  class ToldTo(place: Int)
      extends IllegalStateException(s"a task fails at place $place, as it is told to")

  /** Where tasks have failed: in which application, stage and partition. */
  private[testing] val failed = ConcurrentHashMap.newKeySet[(String, Int, Int, Int)]()

  private def isOn: Boolean =
    On.forall { case (key, value) => SQLConf.get.getConfString(key, "false") == value }

  private def insert(plan: SparkPlan): SparkPlan =
    if (!isOn || !plan.exists(_.isInstanceOf[StateStoreWriter])) plan
    else {
      var places = 0
      def failing(child: SparkPlan): SparkPlan = {
        places += 1
        FailingTasksExec(places, child)
      }
      plan.transformUp {
        case operator: StateStoreWriter => failing(operator.mapChildren(failing))
        case shuffle: ShuffleExchangeExec => shuffle.mapChildren(failing)
      }
    }
}

/** A place at which tasks fail. */
case class FailingTasksExec(place: Int, child: SparkPlan) extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] = {
    val place = this.place
    child.execute().mapPartitionsInternal { rows =>
      val task = TaskContext.get()
      val stage = task.stageId()
      val choice = (stage, task.partitionId(), place).hashCode
      def fail(): Unit =
        if (task.attemptNumber() < 2 && FailingTasks.failed.add(
            (SparkEnv.get.conf.getAppId, stage, task.partitionId(), place))) {
          FailingTasks.count.incrementAndGet()
          throw new FailingTasks.ToldTo(place)
        }
      math.floorMod(choice, 3) match {
        case 0 => rows
        case 1 =>
          fail()
          rows
        case _ => rows ++ Iterator(()).flatMap { _ => fail(); Iterator.empty }
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): FailingTasksExec =
    copy(child = newChild)
}
