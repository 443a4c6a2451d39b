// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import java.io.File
import java.lang.ProcessBuilder.Redirect
import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import org.json4s.jackson.JsonMethods
import org.json4s.{DefaultFormats, Formats}
import org.scalatest.Assertions._

/** A browser without a window, in which pages are looked at. */
object Browser {
  private val Names = Seq("chromium", "chromium-browser", "google-chrome")
  private val Found = """(?s)<pre id="found">(.*?)</pre>""".r
  private implicit val formats: Formats = DefaultFormats

  /** What `look_at_pictures.js` has found. */
  case class Looked(boxes: Int, lines: Int, wrong: Seq[String], paper: String)

  private lazy val command: Option[File] =
    sys
      .env("PATH")
      .split(File.pathSeparator)
      .toSeq
      .flatMap { folder =>
        Names.map(new File(folder, _)).filter(_.canExecute)
      }
      .headOption

  /**
   * Opens a page in a window, light or dark. Cancels the test where there is no browser.
   *
   * @param address
   *   where the page is from
   */
  def look(page: String, address: String, width: Int, dark: Boolean): Looked = {
    assume(command.isDefined, s"no browser is installed: none of ${Names.mkString(", ")}")
    val folder = QuickFileSystem.temporaryDirectory().toPath
    val script = Files.readString(
      Path.of(sys.props("spark.changelog.test.home"), "tests/python/look_at_pictures.js"))
    val file = Files.writeString(
      folder.resolve("page.html"),
      page
        .replace("<head>", s"""<head><base href="$address/">""")
        .replace("</body>", s"<script>$script</script></body>"))
    val shown = folder.resolve("shown.html")
    val options = Seq(
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      s"--user-data-dir=${folder.resolve("profile")}",
      s"--window-size=$width,900",
      s"--blink-settings=preferredColorScheme=${if (dark) 0 else 1}",
      "--dump-dom",
      file.toUri.toString)
    val browser = new ProcessBuilder((command.get.getPath +: options).asJava)
      .redirectOutput(shown.toFile)
      .redirectError(Redirect.DISCARD)
      .start()
    if (!browser.waitFor(2, TimeUnit.MINUTES)) {
      browser.destroyForcibly()
      fail("the browser has shown nothing")
    }
    val text = Files.readString(shown)
    val found = Found.findFirstMatchIn(text).getOrElse(fail(s"the page was not measured:\n$text"))
    JsonMethods
      .parse(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
      .extract[Looked]
  }
}
