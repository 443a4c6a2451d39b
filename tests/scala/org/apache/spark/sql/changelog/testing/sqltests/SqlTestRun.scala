// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.sqltests

import scala.util.{Success, Try}

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, ParsedStatement}
import org.apache.spark.sql.classic.SparkSession

/** How a statement ended. */
sealed abstract class Outcome(val name: String)

object Outcome {
  case object Equal extends Outcome("equal")

  /** Batch Spark itself answers one way or another. */
  case object Several extends Outcome("several answers")

  case class Refused(condition: String, message: String) extends Outcome("refused")

  case class Wrong(message: String) extends Outcome("wrong")

  case class Crashed(error: Throwable) extends Outcome("crashed")
}

/** A query of a file, and its number among the file's statements, from 1. */
final case class NumberedQuery(file: SqlTestFile, number: Int, sql: String) {
  override def toString: String = s"${file.name} $number"
}

/**
 * Runs the statements of a file one after the other: queries that read tables over tables that change,
 * each held against batch Spark after every batch, all others as they are.
 *
 * @param chosen
 *   which queries are tried
 */
class SqlTestRun(first: SparkSession, file: SqlTestFile, chosen: NumberedQuery => Boolean) {
  private val seed = file.name.hashCode.toLong
  private val sessions = new SqlTestSessions(first, file)
  private val batch = new BatchAnswers(sessions, seed)
  private var arrivals = Seq.empty[Arrival]
  private var kept = Option.empty[KeptTables]

  def run(report: (NumberedQuery, Outcome) => Unit): Unit =
    try {
      file.statements.zipWithIndex.foreach { case (statement, index) =>
        val query = NumberedQuery(file, index + 1, statement)
        if (!isQuery(statement)) sessions.execute(statement)
        else if (chosen(query)) outcome(query).foreach(report(query, _))
      }
    } finally {
      kept.foreach(_.close())
      sessions.close()
    }

  private def isQuery(statement: String): Boolean =
    SqlTestRun.Query.findPrefixOf(statement).nonEmpty &&
      !Try(first.sessionState.sqlParser.parsePlan(statement)).toOption.exists(holdsCommand)

  private def holdsCommand(plan: LogicalPlan): Boolean =
    plan.exists(node => node.isInstanceOf[Command] || node.isInstanceOf[ParsedStatement])

  private def prepare(): KeptTables = {
    if (!sessions.isKnown || kept.isEmpty) {
      kept.foreach(_.close())
      arrivals = Arrival.all(sessions.tables, seed)
      batch.reset()
      kept = Some(new KeptTables(sessions))
    }
    kept.get
  }

  /** None for what reads no table, and what batch Spark has no answer to. */
  private def outcome(query: NumberedQuery): Option[Outcome] = {
    val tables = prepare()
    def isAnswered = batch(query.sql, arrivals.last, arrivals.last.batches.size - 1).isSuccess
    if (sessions.tables.isEmpty || !tables.readsTables(query.sql) || !isAnswered) None
    else Some(outcome(query.sql, query.number, tables))
  }

  private def outcome(sql: String, number: Int, tables: KeptTables): Outcome = {
    // batch Spark may fail over some of the rows
    val candidates = Arrival.of(arrivals, number).iterator.map { arrival =>
      arrival -> arrival.batches.indices.map(batch(sql, arrival, _))
    }
    val (arrival, answers) = candidates.find(_._2.forall(_.isSuccess)).get
    try {
      val differing = tables.run(sql, arrival).zip(answers).zipWithIndex.collect {
        case ((Some(rows), Success(expected)), number) if !SameRows(rows, expected) =>
          number -> s"after batch $number (${arrival.name}):\n$rows\nnot\n$expected"
      }
      val (several, wrong) = differing.partition { case (number, _) =>
        batch.areSeveral(sql, arrival, number)
      }
      if (wrong.nonEmpty) Outcome.Wrong(wrong.head._2)
      else if (several.nonEmpty) Outcome.Several
      else Outcome.Equal
    } catch {
      case error: Throwable => SqlTestRun.refusal(error).getOrElse(Outcome.Crashed(error))
    }
  }
}

private object SqlTestRun {
  private val Query =
    "(?is)^(\\s|\\(|--[^\\n]*\\n|/\\*.*?\\*/)*(SELECT|WITH|VALUES|FROM|TABLE)\\b".r

  private def refusal(error: Throwable): Option[Outcome] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).collectFirst {
      case ours: SparkThrowable if isRefusal(ours) =>
        Outcome.Refused(ours.getCondition, ours.toString.takeWhile(_ != '\n').take(300))
    }

  /** Whether it is an error of ours about the query: not supported, or not allowed. */
  private def isRefusal(error: SparkThrowable): Boolean =
    Option(error.getCondition).exists(_.startsWith("CHANGELOG_")) &&
      Option(error.getSqlState).forall(state => state.startsWith("0A") || state.startsWith("42"))
}
