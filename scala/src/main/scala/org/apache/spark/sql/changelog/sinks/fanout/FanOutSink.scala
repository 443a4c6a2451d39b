// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks.fanout

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, Union}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.DataSource
import org.apache.spark.sql.sources.StreamSinkProvider
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

import org.apache.spark.sql.changelog.checkpoint.QueryOrigin
import org.apache.spark.sql.changelog.sinks.ChangelogBatch.quoted
import org.apache.spark.sql.changelog.sinks.{
  ChangelogBatch, ChangelogSink, ChangelogSinkProvider, SinkInput, SinkOptions
}

/**
 * Writes each batch to several sinks, so every target holds the same version of the query.
 *
 * {{{
 *   .option("sinks", "totals, events")
 *   .option("totals.format", "changelog-jdbc").option("totals.url", ...)
 *   .option("events.format", "changelog-kafka").option("events.topic", ...)
 * }}}
 *
 * The query computes a batch once. The batch is done when every sink has written it. If a sink fails, every sink
 * receives the batch again. Sinks with the batch already written skip the repetition.
 *
 * In a statement set each sink has a query of its own. The rows of each query are structs in the
 * column named after the sink:
 *
 * {{{
 *   _changelog_sink   totals         events          _change_type
 *   totals            {Oslo, 12}     NULL            insert
 *   events            NULL           {1, Oslo, 5}    insert
 * }}}
 */
class FanOutSink(session: SparkSession, options: SinkOptions)
    extends ChangelogSink(options.format) {
  import FanOutSink._

  private val names = options
    .required("sinks", "the names of the sinks are needed, with commas between them")
    .split(',')
    .map(_.trim)
    .toSeq

  private val sinks: Seq[ChangelogSink] = names.map { name =>
    val wanted = options.required(s"$name.format", s"the format of the sink $name is needed")
    val provider = Try(DataSource.lookupDataSource(wanted, session.sessionState.conf)).toOption
    val made = provider.map(_.getDeclaredConstructor().newInstance()).collect {
      case sinks: StreamSinkProvider =>
        val own = CaseInsensitiveMap(options.ofSink(name))
        sinks.createSink(session.sqlContext, own, Nil, OutputMode.Append())
    }
    made.collect { case sink: ChangelogSink => sink }.getOrElse {
      val formats = ChangelogSinkProvider.formats.filter(_ != format).mkString(", ")
      throw options.invalid(s"$name.format", s"one of $formats is expected")
    }
  }

  /** The changes of each sink's query in a statement set. */
  private var inputs = Map.empty[String, SinkInput]

  override def accept(output: Seq[Attribute], optimized: LogicalPlan): SinkInput = {
    inputs = if (output.exists(_.name == SinkColumn)) inputsOf(output, optimized) else Map.empty
    super.accept(output, optimized)
  }

  private def inputsOf(output: Seq[Attribute], optimized: LogicalPlan): Map[String, SinkInput] = {
    val queries = queriesOf(optimized)
    val unlike = names.diff(queries.keys.toSeq) ++ queries.keys.toSeq.diff(names)
    if (unlike.nonEmpty) {
      val expected = queries.keys.toSeq.sorted.mkString(", ")
      throw options.invalid("sinks", s"a sink for each query of the set is expected: $expected")
    }
    queries.map { case (name, parts) =>
      val inputs = parts.map(part => SinkInput(format, part.output, part))
      name -> inputs.head.copy(sources = inputs.flatMap(_.sources))
    }
  }

  override protected def check(input: SinkInput): Unit =
    names.zip(sinks).foreach { case (name, sink) =>
      sink.accept(inputs.getOrElse(name, input).copy(sink = sink.format))
    }

  override def checkOrigins(session: SparkSession, origins: Seq[QueryOrigin]): Unit =
    sinks.foreach(_.checkOrigins(session, origins))

  override def write(batch: ChangelogBatch): Unit = {
    batch.changes.persist()
    try {
      names.zip(sinks).foreach { case (name, sink) =>
        sink.write(inputs.get(name).fold(batch)(partOf(batch, name, _)).of(sink.format))
      }
    } finally batch.changes.unpersist()
  }

  /** Returns the changes of one query of a statement set. */
  private def partOf(batch: ChangelogBatch, name: String, input: SinkInput): ChangelogBatch = {
    val columns = input.columnNames.map(column => quoted(name).getField(column).as(column))
    val changes = batch.changes
      .where(quoted(SinkColumn) === name)
      .select(columns :+ quoted(input.changeType.name): _*)
    batch.copy(input = input, changes = changes, nettedBy = None)
  }
}

object FanOutSink {

  /** The column of a statement set with the name of a row's sink. */
  val SinkColumn = "_changelog_sink"

  /** Returns the queries of a statement set by their sinks. The union of two queries can have one sink. */
  private def queriesOf(optimized: LogicalPlan): Map[String, Seq[LogicalPlan]] = {
    val parts = optimized match {
      case union: Union => union.children
      case single => Seq(single)
    }
    val named = parts.collect { case Project(columns, child) =>
      val name = columns.collectFirst { case Alias(Literal(name: UTF8String, _), SinkColumn) =>
        name.toString
      }.get
      val rows = columns.collectFirst { case Alias(row, `name`) => fieldsOf(row) }.get
      name -> Project(rows :+ columns.last, child)
    }
    named.groupMap(_._1)(_._2)
  }

  private def fieldsOf(row: Expression): Seq[NamedExpression] = row match {
    case struct: CreateNamedStruct =>
      struct.names.map(_.toString).zip(struct.valExprs).map {
        case (name, column: Attribute) if column.name == name => column
        case (name, value) => Alias(value, name)()
      }
    case constant =>
      val fields = constant.dataType.asInstanceOf[StructType].fields.toSeq
      fields.zipWithIndex.map { case (field, place) =>
        Alias(GetStructField(constant, place), field.name)()
      }
  }
}

/** `writeStream.format("changelog-fanout")`: writes each batch to several sinks. */
class FanOutSinkProvider extends ChangelogSinkProvider("changelog-fanout") {
  override protected def sink(session: SparkSession, options: SinkOptions): ChangelogSink =
    new FanOutSink(session, options)
}
