// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

import scala.xml.{Elem, NodeSeq, Unparsed}

import org.apache.spark.sql.changelog.plans.ExplainNode

/**
 * Draws what EXPLAIN says of a query as an SVG picture: its result on top, its sources below, and on
 * each arrow the kinds of change that go up it.
 *
 * A node stands in the middle above its inputs, and no two of those share a column of the picture, so
 * that nothing can overlap. Text is as wide as it is told to be, whichever font there is.
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
    } role="img" aria-label="The plan of a query that keeps changes"
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

  /** A node with all below it. */
  private case class Placed(box: PlanBox, inputs: Seq[Placed]) {
    private val below: Int = inputs.map(_.width).sum + Gap * math.max(0, inputs.size - 1)
    val width: Int = math.max(box.width, below)
    val height: Int = box.height + (if (inputs.isEmpty) 0 else Rise + inputs.map(_.height).max)

    /** Where its inputs begin, counted from its own left edge. */
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

  /** The kinds of change a node sends, beside the line that leaves it. */
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
