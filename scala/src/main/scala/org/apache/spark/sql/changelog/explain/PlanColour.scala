// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.explain

/**
 * A colour of the picture of a plan, on a light page and on a dark one.
 *
 * What draws the picture may not know style sheets: it then has the light one.
 */
private[explain] case class PlanColour private (name: String, light: String, dark: String) {

  /** The class of what is filled with it. */
  def fill: String = s"fill-$name"

  /** The class of what is drawn with it. */
  def stroke: String = s"stroke-$name"

  /** The class of what is written with it, outside of a picture. */
  def text: String = s"text-$name"
}

private[explain] object PlanColour {
  val Paper: PlanColour = PlanColour("paper", "#ffffff", "#0f172a")
  val Box: PlanColour = PlanColour("box", "#f8fafc", "#1e293b")
  val Ink: PlanColour = PlanColour("ink", "#0f172a", "#e2e8f0")
  val Quiet: PlanColour = PlanColour("quiet", "#475569", "#a8b5c7")
  val Rule: PlanColour = PlanColour("rule", "#e2e8f0", "#334155")
  val Arrow: PlanColour = PlanColour("arrow", "#64748b", "#94a3b8")
  val Good: PlanColour = PlanColour("good", "#15803d", "#4ade80")
  val Warning: PlanColour = PlanColour("warning", "#b45309", "#fbbf24")
  val Live: PlanColour = PlanColour("live", "#6d28d9", "#c4b5fd")

  val Insert: PlanColour = PlanColour("insert", "#15803d", "#4ade80")
  val Before: PlanColour = PlanColour("before", "#c2410c", "#fb923c")
  val After: PlanColour = PlanColour("after", "#1d4ed8", "#93c5fd")
  val Delete: PlanColour = PlanColour("delete", "#b91c1c", "#fca5a5")

  /** Of titles, and what is written on them. */
  val Title: PlanColour = PlanColour("title", "#ffffff", "#ffffff")
  val Reader: PlanColour = PlanColour("reader", "#0f766e", "#0f766e")
  val Stateful: PlanColour = PlanColour("stateful", "#5b21b6", "#7c3aed")
  val Source: PlanColour = PlanColour("source", "#1e40af", "#2563eb")
  val Plain: PlanColour = PlanColour("plain", "#475569", "#526077")

  private val all = Seq(
    Paper,
    Box,
    Ink,
    Quiet,
    Rule,
    Arrow,
    Good,
    Warning,
    Live,
    Insert,
    Before,
    After,
    Delete,
    Title,
    Reader,
    Stateful,
    Source,
    Plain)

  /** What has the colours, as a class. */
  val Scope = "changelog"

  /**
   * Lets all within [[Scope]] have them: the dark ones on a page that says it is dark, as Spark's UI and notebooks
   * do, or says nothing where its reader likes pages dark.
   */
  val style: String = {
    def values(colour: PlanColour => String) =
      all.map(each => s"--changelog-${each.name}: ${colour(each)}").mkString("{ ", "; ", " }")
    def uses(place: String, property: String) = all.map { colour =>
      s".$Scope .$place-${colour.name} { $property: var(--changelog-${colour.name}) }"
    }
    val saysDark =
      Seq("[data-bs-theme=dark]", "[data-jp-theme-light=false]").map(page => s"$page .$Scope")
    val saysNothing =
      ":root:not([data-bs-theme]):not(:has([data-jp-theme-light=true]))"
    (Seq(
      s".$Scope ${values(_.light)}",
      s"@media (prefers-color-scheme: dark) { $saysNothing .$Scope, svg.$Scope:root ${values(_.dark)} }",
      s"${saysDark.mkString(", ")} ${values(_.dark)}") ++
      uses("fill", "fill") ++ uses("stroke", "stroke") ++ uses("text", "color")).mkString("\n")
  }
}
