// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

/**
 * An operator that keeps state, as the documentation of its class says it.
 *
 * @param shortName
 *   what it is called in the metadata of state
 * @param purpose
 *   the first sentence
 * @param state
 *   the first sentence about its state
 */
final case class ListedOperator(name: String, shortName: String, purpose: String, state: String)

/** Reads the list of operators out of their sources. */
object OperatorList {
  private val ShortName = """override def shortName: String = "(\w+)"""".r
  private val Documented = """(?s)/\*\*((?:(?!\*/).)*)\*/\s*case class (\w+)Exec\(""".r
  private val State = """(?s)- state: (.*?)(?:\n *- |\n *\n|$)""".r

  /** Whether a source is that of an operator with state. */
  def isOperator(source: String): Boolean =
    Documented.findFirstIn(source).isDefined &&
      source.contains("stateInfo: Option[StatefulOperatorStateInfo]")

  /** The operator of a source; none if it does not say what it keeps. */
  def parse(source: String): Option[ListedOperator] = for {
    shortName <- ShortName.findFirstMatchIn(source).map(_.group(1))
    documented <- Documented.findFirstMatchIn(source)
    doc = documented.group(1).linesIterator.map(_.trim.stripPrefix("*").trim).mkString("\n")
    state <- State.findFirstMatchIn(doc).map(_.group(1))
  } yield ListedOperator(
    documented.group(2),
    shortName,
    firstSentence(doc.trim),
    firstSentence(state.replaceAll(";\\s+see\\s+\\[\\[\\w+]]", "")))

  private def firstSentence(text: String): String =
    text.split("\n\n|\\.\\s").head.replaceAll("\\s+", " ").stripSuffix(".")

  def table(operators: Seq[ListedOperator]): Seq[String] =
    Seq("| Operator | In state metadata | What it does | What it keeps |", "|---|---|---|---|") ++
      operators.map { operator =>
        s"| `${operator.name}` | `${operator.shortName}` | ${operator.purpose} | ${operator.state} |"
      }
}
