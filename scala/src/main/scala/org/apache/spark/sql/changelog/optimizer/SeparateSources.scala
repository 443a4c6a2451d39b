// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.optimizer

import scala.collection.mutable

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Attribute, AttributeMap, AttributeSet, ExprId, NamedExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate, Generate, LogicalPlan, Project, Union
}
import org.apache.spark.sql.catalyst.rules.Rule

import org.apache.spark.sql.changelog.compat.SparkRules
import org.apache.spark.sql.changelog.plans.{FromChangelog, RenameColumns}

/**
 * Gives each reading of a source its own columns, across all queries of a plan. Expressions in
 * copies of a common table expression get new columns too.
 *
 * {{{
 *   Join g#1 = g#8                         Join g#1 = g#5
 *   :- Relation [g#1]                 =>   :- Relation [g#1]
 *   +- Project [g#1 AS g#8]                +- Relation [g#5]
 *      +- Relation [g#1]
 * }}}
 *
 * Spark separates such sides by a projection, and keeps the projection below its own joins. Spark
 * does not keep it below our joins, and does not look into our aggregates.
 */
object SeparateSources extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val taken = mutable.Set.empty[ExprId]
    val read = mutable.Set.empty[ExprId]
    plan.mapChildren(_.mapChildren(separate(_, taken, read)))
  }

  private def separate(
      plan: LogicalPlan,
      taken: mutable.Set[ExprId],
      read: mutable.Set[ExprId]): LogicalPlan = {
    val separated = withOwnRepeatedRows(plan).transformUpWithNewOutput {
      // The source's columns are created below, for example from records.
      case source: FromChangelog =>
        if (source.output.exists(column => read.contains(column.exprId))) {
          val own = SparkRules.withNewColumns(source)
          own -> source.output.zip(own.output)
        } else {
          read ++= source.output.map(_.exprId)
          source -> Seq.empty[(Attribute, Attribute)]
        }
      case relation: MultiInstanceRelation =>
        val leaf = relation.asInstanceOf[LogicalPlan]
        if (leaf.output.exists(column => taken.contains(column.exprId))) {
          val own = relation.newInstance()
          own -> leaf.output.zip(own.output)
        } else {
          taken ++= leaf.output.map(_.exprId)
          leaf -> Seq.empty[(Attribute, Attribute)]
        }
      case project: Project =>
        val (columns, renamed) = named(project.projectList, taken)
        (if (renamed.isEmpty) project else project.copy(projectList = columns)) -> renamed
      case aggregate: Aggregate =>
        val (columns, renamed) = named(aggregate.aggregateExpressions, taken)
        (if (renamed.isEmpty) aggregate
         else aggregate.copy(aggregateExpressions = columns)) -> renamed
    }
    withoutAliases(separated, plan.output)
  }

  /**
   * Names the repeated rows of `EXCEPT ALL` and `INTERSECT ALL`. Spark's generator emits its
   * input columns under the same ids. After a renaming below, Spark would take the generator's
   * columns for the renamed ones.
   */
  private def withOwnRepeatedRows(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case project @ Project(columns, generate: Generate)
        if repeats(generate) && AttributeSet(columns.map(_.toAttribute)).size == columns.size =>
      val (own, named) = withOwnRows(generate)
      project.copy(projectList = columns.map(named), child = own)
    case generate: Generate if repeats(generate) =>
      val (own, named) = withOwnRows(generate)
      Project(generate.outputSet.toSeq.map(named), own)
  }

  /**
   * Returns the node with new columns for its generated rows, and the replacement of columns in
   * expressions.
   */
  private def withOwnRows(generate: Generate): (Generate, NamedExpression => NamedExpression) = {
    val made = generate.generatorOutput.map(_.newInstance())
    val repeated = AttributeMap(generate.generatorOutput.zip(made))
    val used = generate.child.output.indices.filter { index =>
      repeated.contains(generate.child.output(index))
    }
    val own = generate.copy(
      unrequiredChildIndex = (generate.unrequiredChildIndex ++ used).distinct,
      generatorOutput = made)
    def named(column: NamedExpression): NamedExpression = column match {
      case column: Attribute if repeated.contains(column) =>
        Alias(repeated(column), column.name)(column.exprId, column.qualifier)
      case other =>
        other
          .transform { case column: Attribute => repeated.getOrElse(column, column) }
          .asInstanceOf[NamedExpression]
    }
    (own, named)
  }

  private def repeats(generate: Generate): Boolean =
    generate.generatorOutput.exists(generate.child.outputSet.contains)

  /**
   * Returns the expressions with new ids in place of `taken` ids, and the pairs of old and new
   * columns. Copies of a common table expression have equal ids.
   */
  private def named(
      expressions: Seq[NamedExpression],
      taken: mutable.Set[ExprId]): (Seq[NamedExpression], Seq[(Attribute, Attribute)]) = {
    val all = expressions.map {
      case alias: Alias if !taken.add(alias.exprId) =>
        Alias(alias.child, alias.name)(
          qualifier = alias.qualifier,
          explicitMetadata = alias.explicitMetadata)
      case other => other
    }
    val renamed = expressions.zip(all).collect {
      case (old, own) if old ne own => old.toAttribute -> own.toAttribute
    }
    (all, renamed)
  }

  /**
   * Removes as many aliases as possible, with unchanged output columns. Spark removes an alias
   * below our operators later, although they read it. An alias read only by the reader of the
   * result moves to the top.
   */
  def withoutAliases(plan: LogicalPlan): LogicalPlan = withoutAliases(plan, plan.output)

  private def withoutAliases(plan: LogicalPlan, wanted: Seq[Attribute]): LogicalPlan = {
    val plain = SparkRules.removeRedundantAliases(plan).transformUp { case union: Union =>
      // Spark skips an input that would have a duplicate column, until a projection resolves it.
      union.mapChildren(input => withEachColumnOnce(withoutAliases(input)))
    }
    val columns = RenameColumns(plain.output, wanted)
    if (columns == plain.output) plain
    else {
      plain match {
        case Project(inner, child) if inner.forall(_.isInstanceOf[Attribute]) =>
          Project(columns, child)
        case other => Project(columns, other)
      }
    }
  }

  /** Spark considers an input of a union with a duplicate column unresolved. */
  private def withEachColumnOnce(plan: LogicalPlan): LogicalPlan =
    if (plan.outputSet.size == plan.output.size) plan
    else {
      val seen = mutable.Set.empty[ExprId]
      Project(
        plan.output.map { column =>
          if (seen.add(column.exprId)) column else Alias(column, column.name)()
        },
        plan)
    }
}
