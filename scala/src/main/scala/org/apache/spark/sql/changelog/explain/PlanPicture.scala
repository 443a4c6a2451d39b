// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import scala.xml.{Elem, NodeSeq, Text, Unparsed}

import org.apache.spark.sql.changelog.plans.{ExplainNode, StateTable}

/**
 * Draws an EXPLAIN tree as an SVG picture: the result on top, the sources below. Each arrow shows
 * the row kinds emitted upwards.
 *
 * A node stands above the middle of its inputs, and inputs use separate columns of the picture.
 * Overlaps are therefore impossible. Text has a fixed width, independent of the font.
 */
private[explain] object PlanPicture {
  import PlanColour.{Arrow, Paper, Quiet}

  private val Margin = 16
  private val Gap = 28
  private val Rise = 58

  def apply(root: ExplainNode): Elem = {
    val tree = place(root)
    val (width, height) = (tree.width + 2 * Margin, tree.height + 2 * Margin)
    <svg xmlns="http://www.w3.org/2000/svg" class={PlanColour.Scope} width={s"$width"} height={
      s"$height"
    }
      viewBox={
      s"0 0 $width $height"
    } role="img" aria-label="The plan of a changelog query"
      font-family={PlanBox.Font} font-size={s"${PlanBox.FontSize}"}>
      <style>{Unparsed(PlanColour.style)}</style>
      <defs>
        <marker id="changes" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path class={Arrow.fill} d="M0,0 L8,4 L0,8 z" fill={Arrow.light}/>
        </marker>
      </defs>
      <rect class={Paper.fill} width={s"$width"} height={s"$height"} fill={Paper.light}/>
      {draw(tree, Margin, Margin)}
    </svg>
  }

  /** A node with its descendants. */
  private case class Placed(box: PlanBox, inputs: Seq[Placed]) {
    private val below: Int = inputs.map(_.width).sum + Gap * math.max(0, inputs.size - 1)
    val width: Int = math.max(box.width, below)
    val height: Int = box.height + (if (inputs.isEmpty) 0 else Rise + inputs.map(_.height).max)

    /** The left edges of the inputs, relative to the node's left edge. */
    val offsets: Seq[Int] =
      inputs.map(_.width).scanLeft((width - below) / 2)(_ + _ + Gap).init

    /** The middle of the box. */
    val middle: Int = width / 2
  }

  private def place(node: ExplainNode): Placed =
    Placed(PlanBox(node), node.children.map(place))

  private def draw(tree: Placed, left: Int, top: Int): NodeSeq = {
    val middle = left + tree.middle
    val bottom = top + tree.box.height
    val inputs = tree.inputs.zip(tree.offsets).flatMap { case (input, offset) =>
      val start = left + offset + input.middle
      arrow(start, bottom + Rise, middle, bottom) ++
        kinds(input.box.node, start, bottom + Rise - 8) ++
        draw(input, left + offset, bottom + Rise)
    }
    tree.box.draw(middle - tree.box.width / 2, top) ++ inputs
  }

  private def arrow(fromX: Int, fromY: Int, toX: Int, toY: Int): NodeSeq = {
    val turn = toY + 16
    <path d={s"M$fromX,$fromY V$turn H$toX V${toY + 2}"} fill="none" class={Arrow.stroke} stroke={
      Arrow.light
    }
      stroke-width="1.4" marker-end="url(#changes)"/>
  }

  /** Draws the row kinds emitted by a node, beside its outgoing line. */
  private def kinds(node: ExplainNode, middle: Int, baseline: Int): NodeSeq = {
    val sent = node.symbols.flatMap(PlanBox.Kinds.get)
    val counts = node.numbers.map { numbers =>
      f"${numbers.rowsOut}%,d ${if (numbers.rowsOut == 1) "row" else "rows"}"
    }
    val labels = sent ++ counts.map(_ -> Quiet)
    val widths = labels.map { case (text, _) => PlanBox.widthOf(text) + 12 }
    val lefts = widths.scanLeft(middle - widths.sum / 2)(_ + _)
    labels.zip(widths).zip(lefts).map { case (((text, colour), width), left) =>
      <g class="kind">
        <rect class={s"${Paper.fill} ${colour.stroke}"} x={s"${left + 1}"} y={
        s"${baseline - 13}"
      } width={
        s"${width - 2}"
      } height="17" rx="4"
          fill={Paper.light} stroke={colour.light}/>
        {PlanBox.line(text, left + 6, baseline, colour)}
      </g>
    }
  }
}

/** A node of a plan's picture: the name, and EXPLAIN's lines below. */
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

  /** The symbol and color of each row kind in EXPLAIN. */
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

  /** Characters of double width take two columns. */
  private def places(text: String): Int =
    text.codePoints().map(char => if (char >= 0x1100 && isWide(char)) 2 else 1).sum()

  private def isWide(char: Int): Boolean =
    char <= 0x115f || (char >= 0x2e80 && char <= 0xa4cf) || (char >= 0xac00 && char <= 0xd7a3) ||
      (char >= 0xf900 && char <= 0xfaff) || (char >= 0xfe30 && char <= 0xfe6f) ||
      (char >= 0xff00 && char <= 0xff60) || char >= 0x1f300

  def widthOf(text: String): Int = math.ceil(places(text) * CharWidth).toInt

  /** Draws one line of text, stretched to its computed width. */
  def line(text: String, x: Int, y: Int, colour: PlanColour, isBold: Boolean = false): Elem =
    <text class={colour.fill} x={s"$x"} y={s"$y"} fill={colour.light} textLength={
      s"${widthOf(text)}"
    } lengthAdjust="spacingAndGlyphs"
      font-weight={if (isBold) "bold" else "normal"} xml:space="preserve">{Text(text)}</text>

  /** Wraps a text, at blanks if possible. Continuation lines are indented. */
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

  /** Returns the longest prefix without blanks that fits in a line, at a character boundary. */
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
