// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.{
  FilterExec, LocalTableScanExec, ProjectExec, SparkPlan, SparkStrategy
}

import org.apache.spark.sql.changelog.RowKind
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.aggregate.PlanChangelogAggregate
import org.apache.spark.sql.changelog.execution.consolidate.ChangelogConsolidateExec
import org.apache.spark.sql.changelog.execution.join.temporal.{
  ChangelogTemporalJoinExec, TemporalJoinLayout
}
import org.apache.spark.sql.changelog.execution.join.{
  ChangelogJoinExec, ChangelogPointLookupExec, JoinSideLayout, LookupLimits
}
import org.apache.spark.sql.changelog.execution.normalize.{
  ChangelogNormalizeExec, NormalizeLayout
}
import org.apache.spark.sql.changelog.execution.output._
import org.apache.spark.sql.changelog.execution.rank.PlanChangelogRank
import org.apache.spark.sql.changelog.execution.replay._
import org.apache.spark.sql.changelog.execution.running.ChangelogRunningExec
import org.apache.spark.sql.changelog.execution.shared.{SharedPartExec, SharedReadingExec}
import org.apache.spark.sql.changelog.execution.time.{
  ChangelogEmitExec, ChangelogRowTtlExec, ChangelogTemporalFilterExec
}
import org.apache.spark.sql.changelog.execution.unique.ChangelogUniqueExec
import org.apache.spark.sql.changelog.microbatch.AssignStateInfo
import org.apache.spark.sql.changelog.plans._
import org.apache.spark.sql.changelog.sources.records.DeadLetters

/** Plans the nodes of a rewritten changelog query; one case per operator. */
class ChangelogStrategy(session: SparkSession) extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    val planned = planNode(plan)
    if (StoredResult.isWanted(plan)) {
      val operators = planned.flatMap(_.collectFirst { case last: ChangelogStateWriter => last })
      operators.foreach(StoredResult.mark(_))
    }
    planned
  }

  private def planNode(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case IdleSource(output) => LocalTableScanExec(output, Nil, None) :: Nil

    case GoneRows(_, error) => throw error()

    case aggregate: ChangelogAggregate =>
      val state = AssignStateInfo(castToImpl(session), _: Long)
      new PlanChangelogAggregate(aggregate, state, planLater(aggregate.child)).plan :: Nil

    case ChangelogNormalize(feed, updateKind, kind, id, child) =>
      val state = Some(AssignStateInfo(castToImpl(session), id))
      val layout = NormalizeLayout(feed)
      ChangelogNormalizeExec(layout, updateKind, kind, state, planLater(child)) :: Nil

    case ChangelogUnique(key, columns, kind, check, id, child) =>
      val state = Some(AssignStateInfo(castToImpl(session), id))
      ChangelogUniqueExec(key, columns, kind, check, state, planLater(child)) :: Nil

    case replay: ChangelogReplay =>
      val placedBy = replay.placedBy.getOrElse(replay.partition)
      ChangelogReplayExec(
        ReplayLayout(replay.partition, replay.columns, replay.order),
        replay.session,
        replay.dropsLate,
        replay.emitsClosed,
        replay.inputKind,
        replay.opening,
        replay.outputKind,
        Some(stateOf(replay.operatorId, placedBy)),
        placedBy,
        planLater(replay.child)) :: Nil

    case neighbors: ChangelogNeighbors =>
      val others = neighbors.columns.filterNot(neighbors.partition.contains)
      ChangelogNeighborsExec(
        NeighborsLayout(
          neighbors.partition,
          neighbors.columns,
          neighbors.inputKind,
          RowOrder(neighbors.order, others)),
        neighbors.reach,
        neighbors.segment,
        neighbors.outputKind,
        Some(stateOf(neighbors.operatorId, neighbors.partition)),
        planLater(neighbors.child)) :: Nil

    case ChangelogRunning(partition, time, functions, id, child) =>
      val state = Some(stateOf(id, partition))
      ChangelogRunningExec(partition, time, functions, state, planLater(child)) :: Nil

    case ChangelogVersions(versions, kind, replay, after, before) =>
      val (now, was) = (planLater(after), planLater(before))
      ChangelogVersionsExec(versions, kind, planLater(replay), now, was) :: Nil

    case recursion @ ChangelogRecursion(loop, inputs, _, child) =>
      ChangelogRecursionExec(loop, inputs, recursion.output, planLater(child)) :: Nil

    case version: ReplayedVersion =>
      val state = AssignStateInfo(castToImpl(session), version.operatorId)
      ReplayedVersionExec(version, state.numPartitions) :: Nil

    case aggregate @ PlanReplayedAggregate(replay) =>
      PlanReplayedAggregate(castToImpl(session), aggregate, replay, planLater(_)) :: Nil

    case rank: ChangelogRank =>
      val state = stateOf(rank.operatorId, rank.ranking.partition)
      PlanChangelogRank(rank, state, planLater(rank.child)) :: Nil

    case join: ChangelogJoin =>
      ChangelogJoinExec(
        join.joinType,
        JoinSideLayout(0, join.leftSide, join.left.output),
        JoinSideLayout(1, join.rightSide, join.right.output),
        join.matchesNull,
        join.condition,
        join.result,
        Some(stateOf(join.operatorId, join.leftSide.key)),
        planLater(join.left),
        planLater(join.right)) :: Nil

    case join: ChangelogTemporalJoin =>
      val state = Some(stateOf(join.operatorId, join.leftSide.key))
      val (left, right) = (planLater(join.left), planLater(join.right))
      val layout = TemporalJoinLayout(join)
      ChangelogTemporalJoinExec(layout, join.matching, join.outputKind, state, left, right) :: Nil

    case ChangelogTemporalFilter(conditions, placedBy, input, kind, id, child) =>
      val state = Some(stateOf(id, placedBy))
      val rows = planLater(child)
      ChangelogTemporalFilterExec(conditions, placedBy, input, kind, state, rows) :: Nil

    case ChangelogRowTtl(ttl, placedBy, input, kind, id, child) =>
      val state = Some(stateOf(id, placedBy))
      ChangelogRowTtlExec(ttl, placedBy, input, kind, state, planLater(child)) :: Nil

    case emit: ChangelogEmit =>
      ChangelogEmitExec(
        emit.emission,
        emit.times,
        emit.delays,
        emit.inOneTask,
        emit.placedBy,
        emit.inputKind,
        emit.outputKind,
        Some(stateOf(emit.operatorId, if (emit.inOneTask) Nil else emit.placedBy)),
        planLater(emit.child)) :: Nil

    case ChangelogConsolidate(key, pairs, replaces, inputKind, outputKind, child, inPlace) =>
      ChangelogConsolidateExec(
        key,
        pairs,
        replaces,
        inputKind,
        outputKind,
        inPlace,
        planLater(child)) :: Nil

    case part: SharedPart =>
      SharedPartExec(part, numPartitions, planLater(part.child)) :: Nil

    case SharedReading(changes, placedBy, output) =>
      val placed = SharedPartExec.partitioning(placedBy, numPartitions)
      SharedReadingExec(changes, placed, output) :: Nil

    case WatchChanges(watched, place, columns, child) =>
      WatchChangesExec(watched, place, columns, planLater(child)) :: Nil

    case PointLookup(joinType, leftKey, table, condition, child) =>
      val conf = session.sessionState.conf
      val limits = LookupLimits(
        conf.getConf(ChangelogConf.LOOKUP_KEYS_PER_QUERY),
        conf.getConf(ChangelogConf.LOOKUP_QUERIES),
        conf.getConf(ChangelogConf.LOOKUP_CACHED_KEYS),
        conf.getConf(ChangelogConf.LOOKUP_CACHE_TTL))
      ChangelogPointLookupExec(
        joinType,
        leftKey,
        table,
        condition,
        limits,
        planLater(child)) :: Nil

    case ChangelogDrain(child) =>
      ChangelogDrainExec(planLater(child)) :: Nil

    case static: ChangelogStatic =>
      val isFirst = AssignStateInfo.isFirstBatch(castToImpl(session))
      (if (isFirst) planLater(static.child)
       else LocalTableScanExec(static.output, Nil, None)) :: Nil

    case output: ChangelogOutput =>
      ChangelogOutputExec(output.explanation, DeadLetters.in(output), planOutput(output)) :: Nil

    case _ => Nil
  }

  /** The number of partitions of the query's operators. */
  private def numPartitions: Int = AssignStateInfo.numPartitions(castToImpl(session))

  /**
   * Returns the state of an operator whose rows are placed by the columns `placedBy`. With no columns, all rows
   * are in one partition.
   */
  private def stateOf(operatorId: Long, placedBy: Seq[Expression]): StatefulOperatorStateInfo =
    AssignStateInfo.placed(AssignStateInfo(castToImpl(session), operatorId), placedBy)

  private def planOutput(output: ChangelogOutput): SparkPlan = {
    val child = planLater(output.child)
    output.kind match {
      case None =>
        val inserted =
          Alias(Literal(RowKind.ChangeTypes(RowKind.Insert)), output.changeType.name)(exprId =
            output.changeType.exprId)
        ProjectExec(output.columns :+ inserted, child)
      case Some(kind) =>
        val paired = output.pairBy match {
          case Some(key) => ChangelogPairExec(key, kind, child)
          case None => child
        }
        val sent =
          if (output.sendsUpdateBefore) paired
          else FilterExec(Not(EqualTo(kind, Literal(RowKind.UpdateBefore))), paired)
        val changeType = Alias(RowKind.changeTypeOf(kind), output.changeType.name)(exprId =
          output.changeType.exprId)
        ProjectExec(output.columns :+ changeType, sent)
    }
  }
}
