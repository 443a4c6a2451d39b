// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.compat

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8

import scala.xml.{Node, NodeSeq}

import jakarta.servlet.http.HttpServletRequest

import org.apache.spark.SparkContext
import org.apache.spark.ui.{SparkUI, SparkUITab, UIUtils, WebUIPage}

/** A request for a page. */
trait WebRequest {

  /** The value of a parameter of the address. */
  def parameter(name: String): Option[String]

  /** The address of a page of the tab, with parameters. */
  def link(page: String, parameters: (String, String)*): String
}

/**
 * A page of a tab of Spark's web UI.
 *
 * @param path
 *   its place below the tab, empty for what the tab shows first
 */
abstract class WebPage(val path: String, val title: String) {
  def content(request: WebRequest): NodeSeq
}

/** A tab of Spark's web UI. */
object WebTab {

  /**
   * Adds a tab to the UI of an application, if it has one.
   *
   * @param path
   *   its place in the UI
   */
  def attach(context: SparkContext, path: String, name: String, pages: Seq[WebPage]): Unit =
    context.ui.foreach(ui => ui.attachTab(new Tab(ui, path, name, pages)))

  private class Tab(ui: SparkUI, path: String, override val name: String, pages: Seq[WebPage])
      extends SparkUITab(ui, path) {
    pages.foreach(page => attachPage(new Page(this, page)))

    /** Behind Spark's own. */
    override def displayOrder: Int = 10
  }

  private class Page(tab: Tab, page: WebPage) extends WebUIPage(page.path) {
    override def render(request: HttpServletRequest): Seq[Node] =
      UIUtils.headerSparkPage(request, page.title, page.content(asked(request)), tab)

    private def asked(request: HttpServletRequest): WebRequest = new WebRequest {
      override def parameter(name: String): Option[String] = Option(request.getParameter(name))

      override def link(page: String, parameters: (String, String)*): String = {
        val place = Seq(tab.prefix, page).filter(_.nonEmpty).mkString("/", "/", "/")
        val text = parameters.map { case (name, value) =>
          s"$name=${URLEncoder.encode(value, UTF_8)}"
        }
        val query = if (text.isEmpty) "" else text.mkString("?", "&", "")
        UIUtils.prependBaseUri(request, tab.basePath, place + query)
      }
    }
  }
}
