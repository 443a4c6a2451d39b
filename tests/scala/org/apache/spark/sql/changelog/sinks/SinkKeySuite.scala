// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sinks

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.DataFrame

import org.apache.spark.sql.changelog.testing._
import org.apache.spark.sql.changelog.views.files.FilesSinkProvider

/** The key by which a sink replaces rows is the one by which the query leaves out old rows. */
class SinkKeySuite extends AnyFunSuite with ChangelogSession with ErrorChecks {
  private val scores = Feed("scores", "id INT, g STRING, v INT", key = Seq("id"))
  private val url = "jdbc:h2:mem:sinkkeys;DB_CLOSE_DELAY=-1"
  private var names = 0

  /** Its rows are identified by `id`, and by `(g, r)`, in which it says what has changed. */
  private val top =
    """SELECT id, g, v, r FROM (
      |  SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS r FROM scores)
      |WHERE r <= 2""".stripMargin

  override protected lazy val spark: org.apache.spark.sql.classic.SparkSession =
    ChangelogSession.start(conf = ChangelogSession.DeltaConf ++ ChangelogSession.Quick)

  private def memory(name: String): (String, Map[String, String], () => DataFrame) =
    ("changelog-memory", Map("queryName" -> name), () => spark.table(name))

  private def delta(name: String): (String, Map[String, String], () => DataFrame) = {
    val path = s"${QuickFileSystem.temporaryDirectory().getPath}/$name"
    val options = Map("path" -> path, "createTable" -> "true")
    ("changelog-table", options, () => spark.read.format("delta").load(path))
  }

  private def jdbc(name: String): (String, Map[String, String], () => DataFrame) = {
    val options = Map("url" -> url, "dbtable" -> name, "createTable" -> "true")
    ("changelog-jdbc", options, () => spark.read.format("jdbc").options(options).load())
  }

  private def files(name: String): (String, Map[String, String], () => DataFrame) = {
    val path = QuickFileSystem.temporaryDirectory()
    def newest: java.io.File =
      path.listFiles().filter(_.getName.startsWith("batch-")).maxBy(_.getName.split('-')(1).toInt)
    val options = Map("path" -> path.getPath, "provider" -> "parquet")
    (classOf[FilesSinkProvider].getName, options, () => spark.read.load(newest.getPath))
  }

  private val sinks =
    Map("memory" -> memory _, "delta" -> delta _, "jdbc" -> jdbc _, "files" -> files _)

  /** Rows enter, leave and change places. */
  private def checkTop(sink: String, arguments: String, options: Map[String, String]): Unit = {
    names += 1
    val (format, own, target) = sinks(sink)(s"top_$names")
    val query = new KeptQuery(spark, scores, top, target())
    query.start(format, own ++ options, arguments)
    query.check("+I 1 a 10", "+I 2 a 20", "+I 3 b 1")
    query.check("+I 4 a 30", "+I 5 b 2")
    query.check("-D 4 a 30", "+I 6 a 40", "+I 7 a 50")
    query.check("-U 6 a 40", "+U 6 b 40", "-U 3 b 1", "+U 3 a 60")
    query.check("-D 7 a 50", "-D 3 a 60", "-D 5 b 2")
    query.forgetLastBatch()
    query.start(format, own ++ options, arguments)
    query.check()
    query.check("-D 6 b 40", "-D 2 a 20")
    query.stop()
  }

  for (sink <- sinks.keys.toSeq.sorted) {
    test(s"$sink: of several keys the query's own choice is taken") {
      checkTop(sink, ", mode => 'upsert'", Map.empty)
    }

    test(s"$sink: another key than the one by which old rows are left out is refused") {
      def refused(arguments: String, key: String, by: String): Unit =
        checkError("CHANGELOG_SINK_KEY_DIFFERS", "key" -> key, "by" -> by) {
          checkTop(sink, arguments, Map("key" -> key.drop(1).dropRight(1)))
        }
      refused(", mode => 'upsert'", "(id)", "(g, r)")
      refused(", mode => 'upsert', key => 'id'", "(g, r)", "(id)")
      refused(", mode => 'upsert', key => 'id'", "(id, g)", "(id)")
    }
  }

  // what they are told of a key is the same for all
  for (sink <- Seq("memory", "jdbc")) {
    test(s"$sink: a key that to_changelog is told rules both") {
      checkTop(sink, ", mode => 'upsert', key => 'id'", Map.empty)
      checkTop(sink, ", mode => 'upsert', key => array('id', 'g')", Map.empty)
    }

    test(s"$sink: with old rows any key will do") {
      checkTop(sink, "", Map.empty)
      checkTop(sink, "", Map("key" -> "g, r"))
      checkTop(sink, "", Map("key" -> "id, v"))
    }

    test(s"$sink: a part of the query's key will do, if it identifies rows") {
      checkTop(sink, ", mode => 'upsert', key => array('id', 'g')", Map("key" -> "id"))
    }
  }
}
