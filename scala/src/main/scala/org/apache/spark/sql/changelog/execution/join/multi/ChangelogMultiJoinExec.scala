// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join.multi

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, PartitioningCollection}
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.execution.{GroupedIterator, SparkPlan}

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.join._
import org.apache.spark.sql.changelog.plans.{JoinResult, SideForm}

/**
 * Joins several changelogs on one key and emits what a batch does to the result.
 *
 *   - in: any changes of all inputs, each sorted by the join key
 *   - out: combinations of a row of each that come and go
 *   - state: the rows of each input once, by join key, and no results in between; see [[JoinLayout]]
 *   - law: replaying `out` into an empty table gives the batch inner join of all input
 *
 * A row whose join key is NULL where NULL matches nothing is not kept.
 */
case class ChangelogMultiJoinExec(
    sides: Seq[JoinSideLayout],
    matchesNull: Seq[Boolean],
    conditions: Seq[Expression],
    result: JoinResult,
    stateInfo: Option[StatefulOperatorStateInfo],
    children: Seq[SparkPlan])
    extends JoinStateWriter {

  override protected val layout: JoinLayout = JoinLayout(sides)

  override def shortName: String = "changelogMultiJoin"

  override def simpleString(maxFields: Int): String = {
    val keys = sides.map(side => truncatedString(side.key, "[", ", ", "]", maxFields))
    val rest = conditions.map(condition => s", condition=$condition").mkString
    s"$nodeName(keys=${keys.mkString(" ")}, ${sides.map(_.form).mkString(", ")}$rest, " +
      s"updates=${result.updateKind})"
  }

  override def output: Seq[Attribute] = sides.flatMap(_.columns) :+ result.kind

  override def producedAttributes: AttributeSet = AttributeSet(result.kind)

  override def outputPartitioning: Partitioning =
    PartitioningCollection(children.map(_.outputPartitioning))

  // asked before the batch knows its time
  override protected lazy val ttls: Seq[Long] =
    sides.map(_ => conf.getConf(ChangelogConf.STATE_TTL))

  override protected def doExecute(): RDD[InternalRow] =
    executeWithStore(zipped(inputRows)) { (store, inputs) =>
      new CombinedChanges(store, inputs.next())
    }

  override protected def storedResult(store: StateStore): Iterator[InternalRow] =
    new StoredMultiJoin(
      layout,
      store,
      sides.map(sideState(_, store)),
      predicates,
      output.init).rows

  /** What a row must meet together with those of the inputs before it, for each input. */
  private def predicates: Array[BasePredicate] = {
    val columns = sides.map(_.columns)
    val complete = sides.indices.map(index => columns.take(index + 1).flatten)
    val byInput = conditions.groupBy { condition =>
      complete.indexWhere(known => condition.references.subsetOf(AttributeSet(known)))
    }
    sides.indices.map { index =>
      byInput.get(index).map(_.reduce(And(_, _))).map(Predicate.create(_, complete(index))).orNull
    }.toArray
  }

  /** Emits what one join key after the other has to say. */
  private final class CombinedChanges(store: StateStore, rows: Seq[Iterator[InternalRow]])
      extends KeyedChanges(ChangelogMultiJoinExec.this.output.size - 1, changeMetrics) {
    private val states = sides.map(sideState(_, store)).toArray
    private val inputs = sides.indices.map { index =>
      val part = new MatchedSide(true, states(index), sides(index), null, null)
      new JoinInput(part, children(index).output, atOnce)
    }.toArray
    override protected val buffer: JoinOutput =
      JoinOutput(ChangelogMultiJoinExec.this.output.init, result)
    // of those with one row per join key it is at hand
    private val cheapest = sides.indices.sortBy(sides(_).form != SideForm.OneRow).toArray
    private val processor =
      new ChangelogMultiJoinProcessor(states, cheapest, predicates, buffer, atOnce)
    private val groups = new GroupsByKey(
      sides.indices.map { index =>
        GroupedIterator(rows(index), sides(index).key, children(index).output)
      }.toArray,
      KeyedChanges.commonKey(sides.head.key))

    private val nullMatchesNothing = matchesNull.indices.filterNot(matchesNull).toArray
    private var joinKey: UnsafeRow = _
    private var isProcessing = false

    override protected def step(): Boolean = {
      val isAtWork = isProcessing
      if (isProcessing) {
        isProcessing = processor.step()
        if (!isProcessing && inputs.exists(_.hasMore)) addSome()
      }
      isAtWork
    }

    override protected def nextKey(): Boolean = groups.hasNext && {
      val (key, changes) = groups.next()
      if (nullMatchesNothing.exists(key.isNullAt(_))) changes.foreach(_.foreach(_ => ()))
      else {
        joinKey = key.asInstanceOf[UnsafeRow]
        inputs.indices.foreach(index => inputs(index).begin(changes(index)))
        addSome()
      }
      true
    }

    /** Starts to join what is held at once of the changes of a join key. */
    private def addSome(): Unit = {
      inputs.foreach(_.addSome(joinKey))
      processor.begin()
      isProcessing = true
    }
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): ChangelogMultiJoinExec = copy(children = newChildren)
}
