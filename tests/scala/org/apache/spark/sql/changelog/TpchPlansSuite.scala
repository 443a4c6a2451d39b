// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import java.nio.file.Files
import java.util.UUID

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.catalyst.expressions.{Expression, NamedExpression, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{
  Partitioning, PartitioningCollection, SinglePartition
}
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter
import org.apache.spark.sql.execution.streaming.runtime.IncrementalExecution
import org.apache.spark.sql.execution.streaming.runtime.WatermarkPropagator
import org.apache.spark.sql.streaming.OutputMode

import org.apache.spark.sql.changelog.execution.LazySortExec
import org.apache.spark.sql.changelog.execution.consolidate.ChangelogConsolidateExec
import org.apache.spark.sql.changelog.execution.normalize.ChangelogNormalizeExec
import org.apache.spark.sql.changelog.execution.shared.{SharedPartExec, SharedReadingExec}
import org.apache.spark.sql.changelog.testing._

/**
 * What Spark puts between the operators of TPC-H's queries, and why.
 *
 * The golden file has a line for each exchange: who asks for it, and how the rows come that would
 * have to be so distributed already for it not to be there.
 */
class TpchPlansSuite extends AnyFunSuite with ChangelogSession with GoldenFiles {
  import TpchPlansSuite._

  private def plan(name: String): SparkPlan = {
    Tpch.tables.foreach { feed =>
      new RawStream(spark, s"raw_${feed.name}", s"_op STRING, ${feed.columns}")
      spark.sql(feed.read(s"raw_${feed.name}", "_op")).createOrReplaceTempView(feed.name)
    }
    val query = Files.readString(home.resolve(s"tests/sql/tpch/$name.sql"))
    val changes = spark.sql(s"SELECT * FROM to_changelog(TABLE($query))")
    // as Spark explains a stream
    new IncrementalExecution(
      castToImpl(spark),
      changes.queryExecution.logical,
      OutputMode.Append(),
      "<unknown>",
      UUID.randomUUID,
      UUID.randomUUID,
      0,
      None,
      OffsetSeqMetadata(0, 0),
      WatermarkPropagator.noop(),
      false).executedPlan
  }

  test("every exchange and sort of TPC-H's queries has its reason, and there is no other") {
    val plans = (1 to 22).map(number => f"q$number%02d").map(name => name -> plan(name))
    val text = plans.map { case (name, plan) =>
      val operators = plan.collect { case operator: StateStoreWriter => operator }
      val normalizes = plan.collect { case normalize: ChangelogNormalizeExec => normalize }
      // tables send old and new rows, and say by which key
      assert(normalizes.isEmpty, name)
      val exchanges = exchangesOf(plan)
      exchanges.foreach { exchange =>
        assert(!exchange.isThereAlready, s"$name: ${exchange.reason}")
      }
      val sorts = plan.collect { case sort: LazySortExec => sort }
      assert(!plan.exists(_.isInstanceOf[SortExec]), name)
      sorts.foreach { sort =>
        assert(!SortOrder.orderingSatisfies(sort.child.outputOrdering, sort.sortOrder), name)
      }
      val counts =
        s"${operators.size} operators, ${exchanges.size} exchanges, ${sorts.size} sorts"
      s"$name: $counts\n${exchanges.map(exchange => s"  ${exchange.reason}\n").mkString}"
    }
    checkGolden("tests/resources/explain/tpch/exchanges.txt", text.mkString("\n"))
  }
}

private object TpchPlansSuite {

  /**
   * @param consumer
   *   the operator that asks for it
   * @param source
   *   the operator whose rows are sent, none if they come from a table
   */
  final case class Exchange(
      exchange: ShuffleExchangeExec,
      consumer: SparkPlan,
      source: Option[SparkPlan]) {

    def isThereAlready: Boolean = consumer match {
      // what is read again has to be written
      case _: SharedPartExec => false
      case _ =>
        exchange.child.outputPartitioning.satisfies(
          consumer.requiredChildDistribution.head) && source.isDefined
    }

    def reason: String = {
      val wanted = keys(exchange.outputPartitioning)
      val from = source match {
        case None => "a table, as rows come"
        case Some(operator) => s"${name(operator)} ${keys(operator.outputPartitioning)}"
      }
      s"$wanted for ${name(consumer)}, from $from"
    }
  }

  def exchangesOf(plan: SparkPlan, consumer: Option[SparkPlan] = None): Seq[Exchange] = {
    val own = plan match {
      case exchange: ShuffleExchangeExec =>
        Seq(Exchange(exchange, consumer.get, operatorBelow(exchange.child)))
      case _ => Nil
    }
    val asking = if (isOperator(plan)) Some(plan) else consumer
    own ++ plan.children.flatMap(exchangesOf(_, asking))
  }

  private def isOperator(plan: SparkPlan): Boolean = plan match {
    case _: StateStoreWriter | _: ChangelogConsolidateExec => true
    case _: SharedPartExec | _: SharedReadingExec => true
    case _ => false
  }

  private def operatorBelow(plan: SparkPlan): Option[SparkPlan] =
    if (isOperator(plan)) Some(plan)
    else if (plan.children.size == 1) operatorBelow(plan.children.head)
    else None

  private def name(plan: SparkPlan): String = plan.nodeName

  private def keys(partitioning: Partitioning): String = partitioning match {
    case SinglePartition => "in one task"
    case all: PartitioningCollection => all.partitionings.map(keys).distinct.mkString(" or ")
    case by: Expression => by.children.map(named).mkString("by (", ", ", ")")
    case _ => "in no order"
  }

  private def named(expression: Expression): String = expression match {
    case column: NamedExpression => column.name
    case other => other.sql
  }
}
