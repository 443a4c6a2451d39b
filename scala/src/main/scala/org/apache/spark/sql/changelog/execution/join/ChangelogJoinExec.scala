// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{
  KeyStateEncoderSpec, PrefixKeyScanStateEncoderSpec, StateStore
}
import org.apache.spark.sql.execution.{
  BinaryExecNode, CoGroupedIterator, GroupedIterator, SparkPlan
}
import org.apache.spark.sql.types.{ArrayType, StructType}
import org.apache.spark.util.CompletionIterator

import org.apache.spark.sql.changelog.UpdateKind
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.ChangelogStateWriter
import org.apache.spark.sql.changelog.execution.expiry.{EntryTimes, EventTimeOf}
import org.apache.spark.sql.changelog.identity.EntryPlacement
import org.apache.spark.sql.changelog.plans.{ChangelogJoin, JoinResult}

/**
 * Joins two changelogs and emits the changes of the result.
 *
 *   - in: any changes of both sides, each sorted by the join key
 *   - out: changed pairs, and rows emitted depending on whether they have a match:
 *     {{{
 *                    pairs   a left row with matches   without        a right row without
 *       inner        yes     -                         -              -
 *       left outer   yes     -                         left, NULLs    -
 *       right outer  yes     -                         -              NULLs, right
 *       full outer   yes     -                         left, NULLs    NULLs, right
 *       left semi    no      left                      -              -
 *       left anti    no      -                         left           -
 *       existence    no      left, true                left, false    -
 *     }}}
 *   - state: the rows of both sides by join key, as little of each row as the keys allow; see [[JoinLayout]]
 *   - law: replaying `out` into an empty table gives the batch join of all input
 *
 * If a watermark bounds a side, late rows are dropped and expired rows are removed from the state. Rows already
 * emitted for them stay in the result.
 *
 * A row with a NULL join key is not stored if NULL matches nothing. The row is emitted as a padding row, or not
 * at all.
 */
case class ChangelogJoinExec(
    joinType: JoinType,
    leftLayout: JoinSideLayout,
    rightLayout: JoinSideLayout,
    matchesNull: Seq[Boolean],
    condition: Option[Expression],
    result: JoinResult,
    stateInfo: Option[StatefulOperatorStateInfo],
    left: SparkPlan,
    right: SparkPlan)
    extends BinaryExecNode
    with JoinStateWriter {

  override protected val layout: JoinLayout = JoinLayout(Seq(leftLayout, rightLayout))

  override def shortName: String = "changelogJoin"

  override def simpleString(maxFields: Int): String = {
    val keys = Seq(leftLayout, rightLayout).map { side =>
      truncatedString(side.key, "[", ", ", "]", maxFields)
    }
    val forms = s"left=${leftLayout.form}, right=${rightLayout.form}"
    val rest = condition.map(condition => s", condition=$condition").mkString
    s"$nodeName $joinType(keys=${keys.mkString(" ")}, $forms$rest, updates=${result.updateKind})"
  }

  override def output: Seq[Attribute] =
    ChangelogJoin.output(joinType, leftLayout.columns, rightLayout.columns) :+ result.kind

  override def producedAttributes: AttributeSet = AttributeSet(output) -- inputSet

  override def outputPartitioning: Partitioning = joinType match {
    case _: InnerLike =>
      PartitioningCollection(Seq(left.outputPartitioning, right.outputPartitioning))
    case LeftOuter | LeftSingle | LeftExistence(_) => left.outputPartitioning
    case RightOuter => right.outputPartitioning
    case _ => UnknownPartitioning(left.outputPartitioning.numPartitions)
  }

  /** False for a scalar subquery: with its changes joined in parts, it could temporarily have two rows. */
  override protected def canSplit: Boolean = super.canSplit && joinType != LeftSingle

  override protected def counters: Seq[(String, String)] =
    super.counters ++ Seq(
      "numMatches" -> "number of matching pairs with a changed row",
      "numPaddingsRetracted" -> "number of rows retracted because a match appeared")

  private lazy val timeBounds: Seq[JoinSideTimeBound] =
    JoinSideTimeBound(leftLayout, rightLayout, condition, batchTime)

  /** Subtracts the delay of the result: pairs and padding rows have the event times of rows that waited for a match. */
  override def produceOutputWatermark(inputWatermarkMs: Long): Option[Long] =
    Some(inputWatermarkMs - JoinSideTimeBound.delay(leftLayout, rightLayout, condition))

  // used before the batch knows its time
  override protected lazy val ttls: Seq[Long] =
    Seq(leftLayout, rightLayout)
      .zip(JoinSideTimeBound.isBounded(leftLayout, rightLayout, condition))
      .map { case (_, isBounded) =>
        if (isBounded) 0L else conf.getConf(ChangelogConf.STATE_TTL)
      }

  override protected def isNoOpWithoutInput: Boolean = !timeBounds.exists(_.isBounded)

  override protected def doExecute(): RDD[InternalRow] = {
    // available on the driver only
    val isNoOp = isNoOpWithoutInput
    executeWithStore(zipped(inputRows)) { (store, inputs) =>
      val Seq(leftRows, rightRows) = inputs.next()
      if (isNoOp && !leftRows.hasNext && !rightRows.hasNext) Iterator.empty
      else {
        CompletionIterator[InternalRow, Iterator[InternalRow]](
          new JoinedChanges(
            store,
            inTime(leftRows, timeBounds(0), left.output),
            inTime(rightRows, timeBounds(1), right.output)),
          removeExpired(store))
      }
    }
  }

  private def inTime(
      rows: Iterator[InternalRow],
      bound: JoinSideTimeBound,
      columns: Seq[Attribute]): Iterator[InternalRow] = bound.late match {
    case Some(late) =>
      applyRemovingRowsOlderThanWatermark(rows, Predicate.create(late, columns))
    case None => rows
  }

  override protected def entryTimes: Option[EntryTimes] =
    if (timeBounds.exists(_.isBounded)) Some(new JoinEntryTimes(layout, timeBounds)) else None

  /** Removes expired rows: no further row of the other side can match them. */
  override protected def removeExpired(store: StateStore): Unit =
    if (timeBounds.exists(_.isBounded)) {
      batchTime.moved.iterator.flatMap(entriesDue(store, _)).foreach { entry =>
        longMetric(
          s"num${JoinLayout.Names(entry.key.getByte(0).toInt).capitalize}RowsDropped") += 1
        longMetric("numRemovedStateRows") += 1
        store.remove(entry.key)
      }
    }

  override protected def storedResult(store: StateStore): Iterator[InternalRow] =
    new StoredJoin(
      layout,
      store,
      leftOf(store),
      rightOf(store),
      emitsPairs,
      predicate,
      output.init).rows

  private def leftOf(store: StateStore): MatchedSide = new MatchedSide(
    true,
    sideState(leftLayout, store),
    leftLayout,
    MatchedSide.paddingIfMatched(joinType),
    MatchedSide.leftPadding(joinType, rightLayout.columns.size))

  private def rightOf(store: StateStore): MatchedSide = new MatchedSide(
    false,
    sideState(rightLayout, store),
    rightLayout,
    null,
    MatchedSide.rightPadding(joinType, leftLayout.columns.size))

  private def emitsPairs: Boolean = LeftExistence.unapply(joinType).isEmpty

  private def predicate: Option[BasePredicate] =
    condition.map(Predicate.create(_, leftLayout.columns ++ rightLayout.columns))

  /** Emits the changes of each join key. */
  private final class JoinedChanges(
      store: StateStore,
      leftRows: Iterator[InternalRow],
      rightRows: Iterator[InternalRow])
      extends KeyedChanges(ChangelogJoinExec.this.output.size - 1, changeMetrics) {
    private val leftSide = leftOf(store)
    private val rightSide = rightOf(store)
    private val leftInput = new JoinInput(leftSide, left.output, atOnce)
    private val rightInput = new JoinInput(rightSide, right.output, atOnce)
    override protected val buffer: JoinOutput =
      JoinOutput(ChangelogJoinExec.this.output.init, result)
    private val processor = new ChangelogJoinProcessor(
      leftSide,
      rightSide,
      emitsPairs,
      joinType == LeftSingle,
      predicate,
      buffer,
      longMetric("numMatches"),
      longMetric("numPaddingsRetracted"))
    private val groups = new CoGroupedIterator(
      GroupedIterator(leftRows, leftLayout.key, left.output),
      GroupedIterator(rightRows, rightLayout.key, right.output),
      KeyedChanges.commonKey(leftLayout.key))

    private val nullMatchesNothing = matchesNull.indices.filterNot(matchesNull).toArray
    private var joinKey: UnsafeRow = _
    private var isProcessing = false
    private var isPassing = false

    override protected def step(): Boolean = {
      val isAtWork = isProcessing || isPassing
      if (isProcessing) {
        isProcessing = processor.step()
        if (!isProcessing && (leftInput.hasMore || rightInput.hasMore)) addSome()
      } else if (isPassing) isPassing = leftInput.pass(buffer) || rightInput.pass(buffer)
      isAtWork
    }

    override protected def nextKey(): Boolean = groups.hasNext && {
      val (key, leftChanges, rightChanges) = groups.next()
      leftInput.begin(leftChanges)
      rightInput.begin(rightChanges)
      if (nullMatchesNothing.exists(key.isNullAt(_))) isPassing = true
      else {
        joinKey = key.asInstanceOf[UnsafeRow]
        addSome()
      }
      true
    }

    /** Starts joining the next part of a join key's changes. */
    private def addSome(): Unit = {
      leftInput.addSome(joinKey)
      rightInput.addSome(joinKey)
      processor.begin()
      isProcessing = true
    }
  }

  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan): ChangelogJoinExec = copy(left = newLeft, right = newRight)
}

/** An operator that stores the rows of its inputs by join key, in a single store. */
private[join] trait JoinStateWriter extends ChangelogStateWriter { self: SparkPlan =>

  /** The layouts of the inputs, in the order of the children. */
  protected def layout: JoinLayout

  /** The form of the emitted changes. */
  def result: JoinResult

  override def requiredChildDistribution: Seq[Distribution] =
    layout.sides.map(side => clusteredBy(side.key))

  override def requiredChildOrdering: Seq[Seq[SortOrder]] = layout.sides.map { side =>
    side.key.map(SortOrder(_, Ascending)) ++ (if (canSplit) side.changeOrder else Nil)
  }

  /**
   * Whether the changes of a join key may be joined in parts. A row of the result may then be inserted and
   * retracted in the same batch. Only a consumer in upsert mode, without before images, cannot net such
   * changes.
   */
  protected def canSplit: Boolean = result.updateKind != UpdateKind.OnlyUpdateAfter

  /** The number of changed rows of an input and join key to hold in memory at once. */
  protected def atOnce: Int =
    if (canSplit) conf.getConf(ChangelogConf.JOIN_ROWS_AT_ONCE) else Int.MaxValue

  override def stateKeySchema: StructType = layout.keySchema

  override def stateValueSchema: StructType = layout.valueSchema

  // the state key's first column is the side
  override def placement: EntryPlacement =
    EntryPlacement.byColumns(layout.sides.head.key, first = 1)

  override def keyEncoder: KeyStateEncoderSpec =
    if (layout.isScanned) PrefixKeyScanStateEncoderSpec(stateKeySchema, layout.numPrefixColumns)
    else super.keyEncoder

  override protected def counters: Seq[(String, String)] =
    super.counters ++ layout.sides.flatMap { side =>
      val name = side.name.capitalize
      Seq(
        s"num${name}RowsAdded" -> s"number of ${side.name} rows added to state",
        s"num${name}RowsDropped" -> s"number of ${side.name} rows dropped from state",
        s"num${name}KeysChanged" -> s"number of join keys with changes of ${side.name} rows")
    }

  protected def sideState(side: JoinSideLayout, store: StateStore): JoinSideState = {
    val name = side.name.capitalize
    val metrics = JoinSideMetrics(
      longMetric("numUpdatedStateRows"),
      longMetric("numRemovedStateRows"),
      longMetric(s"num${name}RowsAdded"),
      longMetric(s"num${name}RowsDropped"),
      longMetric(s"num${name}KeysChanged"))
    JoinSideState(new JoinSideParts(layout, side, store, unmatchedRetractions(), metrics))
  }
}

/** The times at which records of a join's state expire: from then on no row of the other side can match. */
private[join] final class JoinEntryTimes(layout: JoinLayout, bounds: Seq[JoinSideTimeBound])
    extends EntryTimes {
  private val timesOfSide = bounds.map(timesOf).toArray

  override def dueAt(key: UnsafeRow, value: UnsafeRow, after: Long): Long =
    timesOfSide(key.getByte(0).toInt).dueAt(key, value, after)

  private def timesOf(bound: JoinSideTimeBound): EntryTimes =
    (bound.keyOrdinal, bound.row) match {
      case (Some(ordinal), _) =>
        // the state key is the side, then the join key
        val timeOf = new EventTimeOf(ordinal + 1, layout.keySchema(ordinal + 1).dataType)
        (key, _, _) => timeOf(key)
      case (None, Some((column, delay))) =>
        val timeOf = new EventTimeOf(column, bound.side.columns)
        def overAt(row: UnsafeRow): Long = {
          val time = timeOf(row)
          if (time == EntryTimes.Never) time else time + delay
        }
        timesOfRows(bound.side, overAt)
      case _ => (_, _, _) => EntryTimes.Never
    }

  /** Returns the times of a side's records. A record with several rows expires with its last row. */
  private def timesOfRows(side: JoinSideLayout, overAt: UnsafeRow => Long): EntryTimes = {
    val numColumns = side.columns.size
    val ordinal = layout.rowOrdinal(side)
    side.row match {
      case Some(_: ArrayType) =>
        (_, value, _) => {
          val rows = value.getArray(ordinal)
          var last = EntryTimes.Always
          var index = 0
          while (index < rows.numElements()) {
            val row = rows.getStruct(index, numColumns).asInstanceOf[UnsafeRow]
            last = math.max(last, overAt(row))
            index += 1
          }
          last
        }
      case Some(_) => (_, value, _) => overAt(value.getStruct(ordinal, numColumns))
      case None =>
        val suffix = layout.suffixOrdinal(side)
        (key, _, _) => overAt(key.getStruct(suffix, numColumns))
    }
  }
}
