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

  /** Returns the value of a URL parameter. */
  def parameter(name: String): Option[String]

  /** Returns the URL of a page of the tab, with parameters. */
  def link(page: String, parameters: (String, String)*): String
}

/**
 * A page in a tab of Spark's web UI.
 *
 * @param path
 *   the path of the page below the tab, empty for the tab's first page
 */
abstract class WebPage(val path: String, val title: String) {
  def content(request: WebRequest): NodeSeq
}

/** A tab of Spark's web UI. */
object WebTab {

  /**
   * Adds a tab to the UI of an application, if the application has a UI.
   *
   * @param path
   *   the path of the tab in the UI
   */
  def attach(context: SparkContext, path: String, name: String, pages: Seq[WebPage]): Unit =
    context.ui.foreach(ui => ui.attachTab(new Tab(ui, path, name, pages)))

  private class Tab(ui: SparkUI, path: String, override val name: String, pages: Seq[WebPage])
      extends SparkUITab(ui, path) {
    pages.foreach(page => attachPage(new Page(this, page)))

    /** After Spark's own tabs. */
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
