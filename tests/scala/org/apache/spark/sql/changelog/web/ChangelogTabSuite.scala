// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.web

import java.net.URI
import java.net.http.HttpResponse.BodyHandlers
import java.net.http.{HttpClient, HttpRequest, HttpResponse}

import org.scalatest.concurrent.Eventually
import org.scalatest.time.{Seconds, Span}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.streaming.{StreamingQuery, StreamingQueryException}
import org.apache.spark.sql.{DataFrame => AnyDataFrame}

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.{ViewCatalog, ViewDefinition, ViewTest}

/** The tab of Spark's web UI, as a browser asks for it. */
class ChangelogTabSuite extends ViewTest with Eventually {
  override implicit val patienceConfig: PatienceConfig = PatienceConfig(Span(20, Seconds))

  override protected lazy val spark: SparkSession = ChangelogSession.start(conf =
    ChangelogSession.DeltaConf ++ ChangelogSession.Quick ++ Map(
      "spark.sql.warehouse.dir" -> warehouse.getPath,
      "spark.ui.enabled" -> "true",
      "spark.ui.port" -> "0",
      "spark.ui.contentSecurityPolicy.enabled" -> "true"))

  private lazy val raw = new RawStream(spark, "raw", "op STRING, id INT, city STRING, fare INT")
  private val rides = "from_changelog(TABLE(raw), 'op', 'id')"
  private val sums = s"SELECT city, sum(fare) AS total FROM $rides GROUP BY city"

  private val browser =
    HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build()

  private def address: String =
    s"http://127.0.0.1:${URI.create(spark.sparkContext.uiWebUrl.get).getPort}"

  private def ask(path: String): HttpResponse[String] = {
    val request = HttpRequest.newBuilder(URI.create(s"$address$path")).build()
    browser.send(request, BodyHandlers.ofString())
  }

  private def page(path: String): String = {
    val answer = ask(path)
    assert(answer.statusCode() == 200, answer.body())
    answer.body()
  }

  /** The cells of the row of a table that has a text. */
  private def row(page: String, text: String): Seq[String] = {
    val rows = "(?s)<tr>(.*?)</tr>".r.findAllMatchIn(page).map(_.group(1)).toSeq
    val found = rows.find(_.contains(text)).getOrElse(fail(s"no row with $text in $page"))
    "(?s)<td[^>]*>(.*?)</td>".r
      .findAllMatchIn(found)
      .map(_.group(1).replaceAll("<[^>]*>", "").trim)
      .toSeq
  }

  private def start(name: String, sql: String): StreamingQuery = spark
    .sql(s"SELECT * FROM to_changelog(TABLE($sql))")
    .writeStream
    .queryName(name)
    .foreachBatch { (batch: AnyDataFrame, _: Long) =>
      batch.collect()
      ()
    }
    .start()

  private def done(query: StreamingQuery): Unit = {
    query.processAllAvailable()
    eventually(assert(query.lastProgress != null && !query.status.isTriggerActive))
  }

  test("the tab is there once a query of ours runs, and Spark's own queries don't bring it") {
    raw
    val stock = spark.table("raw").writeStream.format("noop").start()
    try {
      raw.add("+I 1 a 5")
      stock.processAllAvailable()
      assert(!page("/jobs/").contains("/changelog/"))
    } finally stock.stop()
    raw.reset()
    raw.add("+I 1 a 5", "+I 2 b 7", "+I 3 b 1")
    val query = start("<totals>", sums)
    try {
      done(query)
      raw.add("-U 1 a 5", "+U 1 a 6", "-D 2 b 7", "-D 3 b 1")
      done(query)
      assert(page("/jobs/").contains("/changelog/"))
      val shown = page("/changelog/")
      assert(!shown.contains("<totals>") && shown.contains("&lt;totals&gt;"))
      assert(shown.contains("/changelog/views/"))
      val cells = row(shown, "&lt;totals&gt;")
      assert(cells.head == "&lt;totals&gt;" && cells(1).endsWith(" s") && cells(2) == "1", cells)
      assert(cells.slice(5, 11) == Seq("4", "0", "1", "1", "1", "1"), cells)
      val one = page(s"/changelog/query/?run=${query.runId}")
      assert(one.contains("<svg") && one.contains("ChangelogAggregate") && one.contains("churn"))
      assert(one.contains("4 rows read"))
    } finally query.stop()
    eventually {
      assert(row(page("/changelog/"), query.runId.toString).last == "")
      assert(page(s"/changelog/query/?run=${query.runId}").contains("Query &lt;totals&gt;"))
    }
    assert(!page("/changelog/query/?run=%3Cb%3Enone").contains("<b>none"))
  }

  test("a query that fails is told with its error, and without secrets") {
    raw.reset()
    val query = start("broken", s"SELECT id, raise_error('at ' || city) AS x FROM $rides")
    raw.add("+I 1 a 5")
    intercept[StreamingQueryException](query.processAllAvailable())
    eventually {
      val cells = row(page("/changelog/"), query.runId.toString)
      assert(cells.head == "broken" && cells.last.contains("at a"), cells)
    }
  }

  test("views are there with their lag, their last refresh and all that came before") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    create("SELECT count(*) AS n FROM range(3)", name = "second")
    deliver("? 3 Eve 1")
    checkError("CHANGELOG_CHANGE_TYPE_UNKNOWN")(run("REFRESH MATERIALIZED VIEW v"))
    val cells = row(page("/changelog/views/"), ">spark_catalog.default.v<")
    assert(cells.slice(1, 3) == Seq("MATERIALIZED VIEW", "FAILED"), cells)
    assert(cells(4).endsWith(" s") && cells(5) == "incremental", cells)
    assert(cells.last.contains("[CHANGELOG_CHANGE_TYPE_UNKNOWN]"), cells)
    val name = "%60spark_catalog%60.%60default%60.%60v%60"
    val shown = page(s"/changelog/view/?name=$name")
    assert(
      row(shown, "SUCCEEDED").slice(2, 8) ==
        Seq("incremental", "the view is new", "SUCCEEDED", "2", "2", "0"))
    assert(row(shown, "the query reads a stream").last.contains("CHANGELOG_CHANGE_TYPE_UNKNOWN"))
    assert(shown.contains("<svg") && shown.contains("ChangelogAggregate"))
    val second = page(s"/changelog/view/?name=${name.replace("%60v%60", "second")}")
    assert(second.contains("Each refresh recomputes all rows"))
    assert(page("/changelog/view/?name=nowhere").contains("CHANGELOG_VIEW_NOT_FOUND"))
    assert(!page("/changelog/view/?name=%3Cb%3E").contains("<b>"))
  }

  test("a view that can't be read is there with the reason, beside the others") {
    create(totals)
    create(totals, name = "second")
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    run("REFRESH MATERIALIZED VIEWS")
    val catalog = spark.sessionState.catalog
    val table = catalog.getTableMetadata(new ViewCatalog(spark).identify(Seq("v")))
    catalog.alterTable(
      table.copy(properties = table.properties + (ViewDefinition.Kind -> "VIEW OF TOMORROW")))
    try {
      val shown = page("/changelog/views/")
      val cells = row(shown, ">spark_catalog.default.v<")
      assert(cells.last.contains("[CHANGELOG_VIEW_UNREADABLE]"), cells)
      assert(row(shown, ">spark_catalog.default.second<")(1) == "MATERIALIZED VIEW")
    } finally catalog.alterTable(table)
  }

  test("a view that runs shows the numbers of its last batch") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    run("START MATERIALIZED VIEW v")
    deliver("+I 3 Eve 20")
    eventually {
      assert(
        row(page("/changelog/"), ">view spark_catalog.default.v<").slice(5, 7) == Seq("1", "1"))
    }
    assert(page("/changelog/view/?name=v").contains("ms in tasks"))
  }

  test("all pages look well in a browser, light and dark, in wide windows and in narrow ones") {
    deliver("+I 1 Ada 30", "+I 2 Ben 20")
    create(totals)
    raw.reset()
    raw.add("+I 1 a 5", "+I 2 b 7")
    val query = start("totals", sums)
    try {
      done(query)
      val paths = Seq(
        "/changelog/" -> false,
        "/changelog/views/" -> false,
        "/changelog/view/?name=v" -> true,
        s"/changelog/query/?run=${query.runId}" -> true)
      // the pages of Spark 4.1 are always light
      val darkOnes = if (ChangelogSession.isSpark41) Seq(false) else Seq(false, true)
      for ((path, hasPicture) <- paths; width <- Seq(1300, 500); dark <- darkOnes) {
        withClue(s"$path, $width wide, dark: $dark: ") {
          val looked = Browser.look(page(path), address, width, dark)
          assert(looked.wrong.isEmpty)
          assert((looked.boxes > 2) == hasPicture)
          assert((looked.paper == "rgb(255, 255, 255)") == !dark)
        }
      }
    } finally query.stop()
  }
}
