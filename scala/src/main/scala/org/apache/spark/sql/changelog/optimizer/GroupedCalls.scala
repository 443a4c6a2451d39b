// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import org.apache.spark.api.java.function.MapFunction
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Count}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils

import org.apache.spark.sql.changelog.compat.TypedFunctions
import org.apache.spark.sql.changelog.inference.nodes.StaticInference
import org.apache.spark.sql.changelog.plans.{GroupValue, ObjectFunction, RowFunctions}

/**
 * Calls functions of typed datasets for rows instead of objects, so that a row's kind survives.
 *
 * {{{
 *   SerializeFromObject [value]       =>   Generate map.filter(k, v), [value]
 *   +- Filter f                            +- t [k, v]
 *      +- MapElements g
 *         +- DeserializeToObject
 *            +- t [k, v]
 * }}}
 *
 * Objects between the nodes have no room for a row kind. Three kinds of plans stay unchanged:
 * functions over groups, static rows, and functions over whole partitions. The latter may mix
 * rows freely.
 */
private[optimizer] object CallRowFunctions extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case rows @ SerializeFromObject(serializer, Objects(source, functions))
        if !StaticInference.isStatic(rows) =>
      generate(source, functions, Seq(identity), serializer)
    case rows @ AppendColumnsWithObject(function, own, others, Objects(source, functions))
        if !StaticInference.isStatic(rows) =>
      val appended = others.map(_.transform { case first: BoundReference =>
        first.copy(ordinal = 1)
      })
      val serializer = own ++ appended.map(_.asInstanceOf[NamedExpression])
      generate(source, functions, Seq(identity, function), serializer)
  }

  private def generate(
      source: DeserializeToObject,
      functions: Seq[ObjectFunction],
      results: Seq[Any => Any],
      serializer: Seq[NamedExpression]): Generate = Generate(
    RowFunctions(source.deserializer, functions, results, serializer),
    unrequiredChildIndex = source.child.output.indices,
    outer = false,
    qualifier = None,
    serializer.map(_.toAttribute),
    source.child)

  /** Matches objects made of rows, and the functions applied to the objects. */
  private object Objects {
    def unapply(plan: LogicalPlan): Option[(DeserializeToObject, Seq[ObjectFunction])] =
      plan match {
        case source: DeserializeToObject => Some(source -> Nil)
        case MapElements(function: MapFunction[_, _], _, _, _, child) =>
          after(child, new MapObject(function.asInstanceOf[MapFunction[Any, Any]].call))
        case MapElements(function, _, _, _, child) =>
          after(child, new MapObject(function.asInstanceOf[Any => Any]))
        case MapPartitions(function, _, child) if TypedFunctions.isFlatMap(function) =>
          after(child, new FlatMapObject(function))
        case Filter(condition, child) =>
          after(child, new FilterObject(BindReferences.bindReference(condition, child.output)))
        case Project(Seq(_), child) => unapply(child)
        case _ => None
      }

    private def after(
        child: LogicalPlan,
        function: ObjectFunction): Option[(DeserializeToObject, Seq[ObjectFunction])] =
      unapply(child).map { case (source, functions) => source -> (functions :+ function) }
  }

}

private class MapObject(function: Any => Any) extends ObjectFunction("map") {
  override def apply(value: Any): Iterator[Any] = Iterator.single(function(value))
}

private class FlatMapObject(function: Iterator[Any] => Iterator[Any])
    extends ObjectFunction("flatMap") {
  override def apply(value: Any): Iterator[Any] = function(Iterator.single(value))
}

private class FilterObject(condition: Expression) extends ObjectFunction("filter") {
  @transient private lazy val predicate = Predicate.create(condition)

  override def apply(value: Any): Iterator[Any] =
    if (predicate.eval(InternalRow(value))) Iterator.single(value) else Iterator.empty
}

/**
 * Gives equal groups, and equal counted values, equal bytes. A state store finds entries by their
 * bytes.
 *
 * {{{
 *   Aggregate [name], [name, count(DISTINCT nick)]
 *     =>
 *   Aggregate [collationkey(name)], [group_value(name) AS name, count(DISTINCT collationkey(nick))]
 * }}}
 */
private[optimizer] object GroupByCollationKey extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case aggregate: Aggregate =>
      countByKey(groupByKey(aggregate))
  }

  private def groupByKey(aggregate: Aggregate): Aggregate =
    if (!aggregate.groupingExpressions.exists(isUnstable)) aggregate
    else {
      val groups = aggregate.groupingExpressions.filter(isUnstable)
      def shown(expression: Expression): Expression = expression match {
        case call: AggregateExpression => call
        case group if groups.exists(_.semanticEquals(group)) =>
          GroupValue(group).toAggregateExpression()
        case other => other.mapChildren(shown)
      }
      aggregate.copy(
        groupingExpressions = aggregate.groupingExpressions.map {
          case group if isUnstable(group) => CollationKey.injectCollationKey(group)
          case group => group
        },
        aggregateExpressions = aggregate.aggregateExpressions.map {
          case column: Attribute if groups.exists(_.semanticEquals(column)) =>
            Alias(shown(column), column.name)(column.exprId, column.qualifier)
          case other => shown(other).asInstanceOf[NamedExpression]
        })
    }

  private def countByKey(aggregate: Aggregate): Aggregate =
    aggregate.copy(aggregateExpressions = aggregate.aggregateExpressions.map { result =>
      result
        .transform {
          case call @ AggregateExpression(count: Count, _, true, _, _)
              if count.children.exists(isUnstable) =>
            call.copy(aggregateFunction =
              count.copy(children = count.children.map(CollationKey.injectCollationKey)))
        }
        .asInstanceOf[NamedExpression]
    })

  private def isUnstable(group: Expression): Boolean =
    !UnsafeRowUtils.isBinaryStable(group.dataType)
}
