// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import scala.xml.{Elem, NodeSeq, Text}

import org.apache.spark.sql.changelog.plans.{ExplainNode, StateTable}

/** One node of a plan's picture: its name, and below it line by line what EXPLAIN says of it. */
private[explain] case class PlanBox(node: ExplainNode) {
  import PlanBox._
  import PlanColour.{Good, Ink, Live, Quiet, Warning}

  private case class Line(text: String, colour: PlanColour, isBold: Boolean = false)

  private val title = Line(node.node, PlanColour.Title, isBold = true)

  private val lines: Seq[Line] = {
    val keys = node.upsertKeys.map(_.mkString("(", ", ", ")")).mkString(" or ")
    val state = node.state.flatMap { table =>
      val bound = if (isUnbounded(table.boundedBy)) Warning else Good
      Seq(
        s"▤ ${table.table}: ${table.key.mkString("(", ", ", ")")} → ${table.value}" -> Ink,
        s"  ${table.boundedBy}" -> bound)
    }
    val said =
      Seq(node.detail -> Ink).filter(_._1.nonEmpty) ++
        Seq(s"key $keys" -> Quiet).filter(_ => node.upsertKeys.nonEmpty) ++
        node.strategy.map(_ -> Quiet) ++
        state ++
        node.reasons.map(reason => s"· $reason" -> Quiet) ++
        node.warnings.map(warning => s"! $warning" -> Warning) ++
        node.numbers.toSeq.flatMap { now =>
          Seq(now.flow -> Live, now.kept -> Live)
        } ++
        node.emittedLines.map(_ -> Live)
    said.flatMap { case (text, colour) => wrap(text).map(Line(_, colour)) }
  }

  val width: Int =
    (title +: lines).map(line => widthOf(line.text)).max.max(MinWidth) + 2 * Padding

  val height: Int = TitleHeight + (if (lines.isEmpty) 0 else lines.size * LineHeight + Padding)

  def draw(left: Int, top: Int): NodeSeq = {
    val colour = colourOf(node)
    <g class="node">
      <rect class={s"box ${PlanColour.Box.fill} ${colour.stroke}"} x={s"$left"} y={
      s"$top"
    } width={
      s"$width"
    } height={s"$height"} rx="6"
        fill={PlanColour.Box.light} stroke={colour.light} stroke-width="1.4"/>
      <path class={s"title ${colour.fill}"} d={
      s"M$left,${top + TitleHeight} v-${TitleHeight - 6} q0,-6 6,-6 h${width - 12} q6,0 6,6 v${TitleHeight - 6} z"
    }
        fill={colour.light}/>
      {line(title.text, left + Padding, top + 17, title.colour, title.isBold)}
      {
      lines.zipWithIndex.map { case (written, index) =>
        line(
          written.text,
          left + Padding,
          top + TitleHeight + LineHeight * (index + 1),
          written.colour)
      }
    }
    </g>
  }
}

private[explain] object PlanBox {
  val Font = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
  val FontSize = 12

  /** A row kind of EXPLAIN as changes are written, and its colour. */
  val Kinds: Map[String, (String, PlanColour)] = Map(
    "I" -> ("+I" -> PlanColour.Insert),
    "UB" -> ("-U" -> PlanColour.Before),
    "UA" -> ("+U" -> PlanColour.After),
    "D" -> ("-D" -> PlanColour.Delete))

  private val CharWidth = 7.25
  private val MaxChars = 58
  private val MinWidth = 150
  private val Padding = 10
  private val TitleHeight = 25
  private val LineHeight = 16

  def isUnbounded(bound: String): Boolean = bound == StateTable.Unbounded

  /** What is written with characters of double width takes two places. */
  private def places(text: String): Int =
    text.codePoints().map(char => if (char >= 0x1100 && isWide(char)) 2 else 1).sum()

  private def isWide(char: Int): Boolean =
    char <= 0x115f || (char >= 0x2e80 && char <= 0xa4cf) || (char >= 0xac00 && char <= 0xd7a3) ||
      (char >= 0xf900 && char <= 0xfaff) || (char >= 0xfe30 && char <= 0xfe6f) ||
      (char >= 0xff00 && char <= 0xff60) || char >= 0x1f300

  def widthOf(text: String): Int = math.ceil(places(text) * CharWidth).toInt

  /** One line of text, stretched to the width that was reckoned with. */
  def line(text: String, x: Int, y: Int, colour: PlanColour, isBold: Boolean = false): Elem =
    <text class={colour.fill} x={s"$x"} y={s"$y"} fill={colour.light} textLength={
      s"${widthOf(text)}"
    } lengthAdjust="spacingAndGlyphs"
      font-weight={if (isBold) "bold" else "normal"} xml:space="preserve">{Text(text)}</text>

  /** Lines of a bearable length, cut at blanks where there are any; what follows is indented. */
  def wrap(text: String): Seq[String] = {
    val indent = " " * (text.segmentLength(_ == ' ') + 2)
    def cut(rest: String): List[String] =
      if (places(rest) <= MaxChars) List(rest)
      else {
        val most = rest.length.min(MaxChars)
        val blank = rest.lastIndexOf(' ', most)
        val end = if (blank > indent.length + MaxChars / 3) blank else fitting(rest)
        rest.take(end) :: cut(indent + rest.drop(end).stripLeading)
      }
    cut(text.replaceAll("[\\p{Cntrl}]", " "))
  }

  /** How much of a text without blanks fits in a line, no character torn apart. */
  private def fitting(text: String): Int = {
    val ends = Iterator
      .iterate(0)(text.offsetByCodePoints(_, 1))
      .takeWhile(end => end == 0 || places(text.take(end)) <= MaxChars)
    ends.foldLeft(0)((_, end) => end)
  }

  private def colourOf(node: ExplainNode): PlanColour =
    if (node.node == "ToChangelog") PlanColour.Reader
    else if (node.state.nonEmpty) PlanColour.Stateful
    else if (node.children.isEmpty || node.node.endsWith("Source")) PlanColour.Source
    else PlanColour.Plain
}
