// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.collection.mutable

/**
 * A program with its expected changes, read from a file in `tests/sql/scenarios`.
 *
 * {{{
 *   -- A row moves from one group to another.
 *   feed rides(id INT, city STRING, fare INT) KEY (id)
 *   query SELECT city, sum(fare) AS total
 *     FROM rides GROUP BY city
 *   mode upsert KEY (city)
 *
 *   rides +I 1 Oslo 5
 *   -> +I Oslo 5
 *   rides -U 1 Oslo 5
 *   & rides +U 1 Rome 5
 *   -> -D Oslo 5
 *   -> +I Rome 5
 * }}}
 *
 *   - The comment at the top is the title. `-- tags: join, nulls` lists tags to select tests by. A line that
 *     begins with a blank continues the previous line.
 *   - After a feed's columns: `KEY (...)`, `SEQUENCE BY (...)`, and `INSERT ONLY` or `UPSERT`.
 *   - Each change is a batch of its own. A change that begins with `&` belongs to the previous batch. The `->`
 *     lines below list every change emitted by the batch: first retractions, then inserts.
 *   - For a query that fails at start: `error CONDITION` in place of changes, with lines `name: value` for its
 *     parameters.
 */
final case class Scenario(
    name: String,
    title: String,
    tags: Seq[String],
    program: Program,
    mode: String,
    key: Seq[String],
    error: Option[ExpectedError],
    lines: Seq[String]) {

  /** Returns the program with batches joined into batches of these sizes. */
  def inBatches(sizes: Seq[Int]): Program = {
    val numSteps = program.steps.size
    require(sizes.sum == numSteps, s"${sizes.mkString(", ")} are not $numSteps batches")
    val ends = sizes.scanLeft(0)(_ + _)
    val steps = ends.zip(ends.drop(1)).map { case (from, until) =>
      Scenario.together(program.steps.slice(from, until))
    }
    program.copy(steps = steps)
  }

  /** The expected changes of each batch, as text; empty if the text has no expected changes. */
  def expected: Option[Seq[Seq[String]]] = {
    val batches = lines.foldLeft(Vector.empty[Vector[String]]) { (batches, line) =>
      if (line.startsWith(Scenario.Emits)) {
        batches.init :+ (batches.last :+ line.stripPrefix(Scenario.Emits).trim)
      } else if (Scenario.isChange(line) && !line.startsWith(Scenario.And))
        batches :+ Vector.empty
      else batches
    }
    Option.when(batches.exists(_.nonEmpty))(batches)
  }

  /** Returns the file's text with these changes as expected changes. */
  def emitting(changes: Seq[Seq[Change]]): String = {
    val remaining = mutable.Queue.from(changes)
    val kept = lines.filterNot(_.startsWith(Scenario.Emits))
    val written = kept.zipAll(kept.drop(1), "", "").flatMap { case (line, next) =>
      if (!Scenario.isChange(line) || next.startsWith(Scenario.And)) Seq(line)
      else line +: Scenario.ordered(remaining.dequeue()).map(Scenario.Emits + _)
    }
    written.mkString("", "\n", "\n")
  }
}

/** An error condition with the parameters to check. */
final case class ExpectedError(condition: String, parameters: Map[String, String])

object Scenario {
  private val FeedText =
    """(\w+)\((.+?)\)(?: KEY \(([^)]*)\))?(?: SEQUENCE BY \(([^)]*)\))?(?: (INSERT ONLY|UPSERT))?""".r
  private val ModeText = """(\w+)(?: KEY \(([^)]*)\))?""".r
  private val ParameterText = """(\w+): (.*)""".r
  private val Emits = "-> "
  private val And = "& "
  private val Tags = "-- tags: "

  def parse(name: String, text: String): Scenario = {
    val lines = text.linesIterator.toSeq
    val (comments, rest) = lines.filter(_.trim.nonEmpty).partition(_.startsWith("--"))
    val (tags, title) = comments.partition(_.startsWith(Tags))
    val statements = joined(rest.filterNot(_.startsWith(Emits)))
    def all(word: String) =
      statements.filter(_.startsWith(s"$word ")).map(_.stripPrefix(s"$word "))
    val feeds = all("feed").map(feed)
    val (mode, key) = all("mode").headOption.map(this.mode).getOrElse(("retract", Nil))
    Scenario(
      name,
      title.map(_.stripPrefix("-- ")).mkString(" "),
      tags.flatMap(_.stripPrefix(Tags).split(",")).map(_.trim),
      Program(feeds, all("query").head, steps(feeds, statements.filter(isChange))),
      mode,
      key,
      all("error").headOption.map(error),
      lines)
  }

  /** Joins lines that begin with a blank to the previous line. */
  private def joined(lines: Seq[String]): Seq[String] =
    lines.foldLeft(Vector.empty[String]) { (statements, line) =>
      if (line.startsWith(" ")) statements.init :+ s"${statements.last}\n${line.trim}"
      else statements :+ line
    }

  private def isChange(line: String): Boolean = {
    val first = line.takeWhile(!_.isWhitespace)
    first.nonEmpty && !Set("--", "->", "feed", "query", "mode", "error").contains(first)
  }

  private def feed(text: String): Feed = text match {
    case FeedText(name, columns, key, sequence, kind) =>
      Feed(
        name,
        columns,
        names(key),
        insertOnly = kind == "INSERT ONLY",
        upsert = kind == "UPSERT",
        sequence = names(sequence))
    case other => throw new IllegalArgumentException(s"'$other' is not a feed")
  }

  private def mode(text: String): (String, Seq[String]) = text match {
    case ModeText(mode, key) => (mode, names(key))
    case other => throw new IllegalArgumentException(s"'$other' is not a mode")
  }

  private def names(list: String): Seq[String] =
    Option(list).toSeq.flatMap(_.split(",")).map(_.trim)

  private def steps(feeds: Seq[Feed], changes: Seq[String]): Seq[Step] =
    changes.foldLeft(Vector.empty[Step]) { (steps, text) =>
      val next = step(feeds, text.stripPrefix(And))
      if (text.startsWith(And)) steps.init :+ together(Seq(steps.last, next)) else steps :+ next
    }

  private def step(feeds: Seq[Feed], text: String): Step = {
    val (name, change) = text.span(!_.isWhitespace)
    val feed = feeds.find(_.name == name).getOrElse {
      throw new IllegalArgumentException(s"'$text' is not a change of a feed")
    }
    val step = Step(feed, change)
    require(
      !feed.insertOnly || !step.changes(name).exists(_.isRetraction),
      s"'$text': rows of $name only come")
    step
  }

  private def error(text: String): ExpectedError = {
    val lines = text.linesIterator.toSeq
    val parameters = lines.tail.map {
      case ParameterText(name, value) => name -> value
      case other => throw new IllegalArgumentException(s"'$other' is not a parameter")
    }
    ExpectedError(lines.head, parameters.toMap)
  }

  private def together(steps: Seq[Step]): Step = {
    val names = steps.flatMap(_.changes.keys).distinct
    Step(names.map(name => name -> steps.flatMap(_.changes.getOrElse(name, Nil))).toMap)
  }

  private def ordered(changes: Seq[Change]): Seq[String] = {
    val (gone, come) = changes.partition(_.isRetraction)
    Seq(gone, come).flatMap(_.map(_.toString).sorted)
  }
}
