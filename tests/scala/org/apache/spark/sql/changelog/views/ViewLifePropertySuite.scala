// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.collection.mutable
import scala.util.control.NonFatal
import scala.util.{Random, Try}

import org.apache.spark.SparkThrowable

import org.apache.spark.sql.changelog.testing._

/**
 * Random views over tables and over each other, three levels deep and in diamonds, stored as files and as Delta.
 * Random statements change the tables and the views. After every statement, each view it wrote equals
 * its query in batch Spark, and each other view is unchanged.
 */
class ViewLifePropertySuite extends SeedSuite(numSeeds = 3) with ViewSession {
  import ViewLifePropertySuite._

  private var numPartitioned = 0
  private val modes = mutable.Set.empty[String]

  /** Partitions of a table are recomputed in one of many lives with a partitioned table. */
  override protected def afterAll(): Unit = {
    super.afterAll()
    assert(numPartitioned < 10 || modes(TouchedPartitions.Mode), modes.mkString(", "))
  }

  override protected def checkSeed(seed: Long): Unit = {
    val life = new ViewLife(seed)
    try life.live()
    catch {
      case error: Throwable =>
        throw new AssertionError(s"seed $seed\n${life.statements.mkString(";\n")}\n$error", error)
    } finally life.drop()
  }

  private class ViewLife(seed: Long) {
    private val random = new Random(seed)
    private val breadth = new Random(seed + 1000)
    private val partitions = new Random(seed + 2000)
    private val partitionedBy = Partitions(Math.floorMod(seed, Partitions.size))
    private val queries = mutable.LinkedHashMap.empty[String, String]
    private val held = mutable.Map.empty[String, RowMultiset]
    private val saved = mutable.Map.empty[String, (String, RowMultiset)]
    private val formats = mutable.Map.empty[String, String]
    val statements = mutable.ArrayBuffer.empty[String]
    private var lastId = 0

    def live(): Unit = {
      run("CREATE TABLE t (id INT, k INT, v INT, at TIMESTAMP) USING parquet")
      run(s"CREATE TABLE u (id INT, k INT, v INT, at TIMESTAMP) USING delta $partitionedBy")
      if (isPartitioned) {
        numPartitioned += 1
        execute(
          "INSERT INTO u SELECT 100 + id, id % 3, id % 4 + 1, TIMESTAMP'2026-01-01' FROM range(12)")
      }
      Tables.foreach(table => execute(s"INSERT INTO $table VALUES ${rows(2)}"))
      Views.foreach { view =>
        formats(view) = draw(Seq("parquet", "delta"))
        queries(view) = query(sourcesOf(view))
        if (isPartitioned && view == Views.head) queries(view) = ofPartitions()
        write(s"CREATE MATERIALIZED VIEW $view USING ${formats(view)} AS ${queries(view)}", view)
      }
      (1 to NumStatements).foreach(_ => step())
      Views.foreach { view =>
        refresh(view)
        modes ++= run(s"SHOW REFRESHES OF $view").map(_.getAs[String]("mode"))
      }
    }

    private def isPartitioned = partitionedBy.nonEmpty

    def drop(): Unit = {
      Views.reverse.foreach(view => run(s"DROP MATERIALIZED VIEW IF EXISTS $view CASCADE"))
      Tables.foreach(table => run(s"DROP TABLE IF EXISTS $table"))
    }

    private def step(): Unit = random.nextInt(12) match {
      case 0 | 1 | 2 | 3 =>
        change()
        if (isPartitioned && partitions.nextBoolean()) refresh(Views.head)
      case 4 | 5 | 6 | 7 => refresh(draw(Views))
      case 8 => write("REFRESH MATERIALIZED VIEWS", Views: _*)
      case 9 => alter(draw(Views))
      case 10 => saveOrRestore(draw(Views))
      case 11 => swap(draw(Views), draw(Views))
    }

    private def change(): Unit = {
      if (isPartitioned && partitions.nextBoolean()) () // a join recomputes partitions only then
      else if (random.nextBoolean())
        execute(s"INSERT INTO t VALUES ${rows(1 + random.nextInt(2))}")
      else {
        val kept = run(s"SELECT * FROM t WHERE v <> ${random.nextInt(4)}")
        val values = kept.map(_.toSeq.map(literal).mkString("(", ", ", ")")) :+ row()
        execute(s"INSERT OVERWRITE t VALUES ${values.mkString(", ")}")
      }
      val second = draw(
        Seq(
          s"INSERT INTO u VALUES ${rows(1)}",
          s"DELETE FROM u WHERE k = ${random.nextInt(3)}",
          s"UPDATE u SET v = v % 3 + 1 WHERE k = ${random.nextInt(3)}"))
      execute(second)
    }

    private def refresh(view: String): Unit =
      write(
        s"REFRESH MATERIALIZED VIEW $view ${if (random.nextInt(6) == 0) "FULL" else ""}",
        view)

    private def alter(view: String): Unit = {
      val changed =
        if (random.nextBoolean()) s"${queries(view)} UNION ALL SELECT id, k, v, at FROM t"
        else if (isPartitioned && view == Views.head) ofPartitions()
        else query(sourcesOf(view))
      // after a swap it may come to read itself
      if (execute(s"ALTER MATERIALIZED VIEW $view AS $changed")) {
        queries(view) = changed
        held(view) = rowsOf(changed)
      }
      check()
    }

    private def saveOrRestore(view: String): Unit = saved.get(view) match {
      case None =>
        if (execute(s"CREATE SAVEPOINT s OF MATERIALIZED VIEW $view")) {
          saved(view) = queries(view) -> held(view)
        }
        check()
      case Some((query, rows)) =>
        if (execute(s"RESTORE MATERIALIZED VIEW $view TO SAVEPOINT s")) {
          queries(view) = query
          held(view) = rows
        }
        check()
    }

    private def swap(view: String, other: String): Unit = {
      if (view != other && execute(s"ALTER MATERIALIZED VIEW $view SWAP WITH $other")) {
        val (query, rows) = (queries(view), held(view))
        queries(view) = queries(other)
        held(view) = held(other)
        queries(other) = query
        held(other) = rows
      }
      check()
    }

    /** Runs a statement that brings some views up to date with what they read. */
    private def write(sql: String, views: String*): Unit = {
      val failed = Try(run(sql)).failed.toOption
      statements += failed.fold("")(error =>
        s"-- ${error.getMessage.linesIterator.next()}: ") + sql
      // a view may read one that comes later, after a swap
      val expected = views.map(view => view -> Try(rowsOf(queries(view))))
      expected.foreach { case (view, rows) =>
        if (failed.isEmpty) held(view) = rows.get
        else {
          val now = rowsOf(s"SELECT * FROM $view")
          if (rows.toOption.contains(now)) held(view) = now
        }
      }
      failed.foreach(error => if (expected.forall(_._2.isSuccess)) throw error)
      check()
    }

    /** Whether a statement did what it says: one about views may be refused by name. */
    private def execute(sql: String): Boolean =
      try {
        run(sql)
        statements += sql
        true
      } catch {
        case refused: SparkThrowable
            if refused.getCondition == "DIVIDE_BY_ZERO" ||
              Option(refused.getCondition).exists(_.startsWith("CHANGELOG_")) =>
          statements += s"-- ${refused.getCondition}: $sql"
          false
        case NonFatal(error) =>
          statements += sql
          throw error
      }

    private def check(): Unit = held.foreach { case (view, rows) =>
      val now = rowsOf(s"SELECT * FROM $view")
      assert(now == rows, s"$view holds:\n$now\nexpected:\n$rows")
    }

    private def rowsOf(sql: String): RowMultiset = RowMultiset.of(run(sql))

    private def sourcesOf(view: String): Seq[String] = {
      val before = Views.takeWhile(_ != view)
      // Mostly the view before, for levels. Otherwise views of one level are refreshed side by side.
      val first =
        if (breadth.nextInt(3) == 0) Tables(breadth.nextInt(Tables.size))
        else before.lastOption.getOrElse(draw(Tables))
      Seq(first, draw(Tables ++ before))
    }

    private def query(sources: Seq[String]): String = {
      val Seq(a, b) = random.shuffle(sources)
      draw(
        Seq(
          s"SELECT id, k, v, at FROM $a WHERE v > ${random.nextInt(3)}",
          s"SELECT id, k, v, at FROM $a WHERE at > now() - INTERVAL 10000 DAYS",
          s"SELECT id, k, v, at FROM $a WHERE at <= now()",
          s"SELECT id, k, INT(6 / v) AS v, at FROM $a",
          s"SELECT max(id) AS id, k, INT(sum(v)) AS v, max(at) AS at FROM $a GROUP BY k",
          s"SELECT a.id, a.k, b.v, a.at FROM $a AS a JOIN $b AS b ON a.id = b.id AND a.k = b.k",
          s"SELECT a.id, a.k, b.v, a.at FROM $a AS a LEFT JOIN (SELECT k, max(v) AS v FROM $b GROUP BY k) AS b ON a.k = b.k",
          s"SELECT id, k, v, at FROM $a UNION ALL SELECT id, k, v, at FROM $b WHERE at > now() - INTERVAL 10000 DAYS"))
    }

    /** A query that may be recomputed by the partitions of `u`. */
    private def ofPartitions(): String = {
      val queries = Seq(
        s"SELECT id, k, v, at FROM u WHERE v > ${partitions.nextInt(3)}",
        "SELECT max(id) AS id, k, INT(sum(v)) AS v, max(at) AS at FROM u GROUP BY k",
        "SELECT max(id) AS id, k % 2 AS k, INT(count(*)) AS v, max(at) AS at FROM u GROUP BY k % 2",
        "SELECT DISTINCT id % 5 AS id, k, 1 AS v, TIMESTAMP'2026-01-01' AS at FROM u",
        "SELECT id, k, INT(rank() OVER (PARTITION BY k ORDER BY v, id)) AS v, at FROM u",
        "SELECT u.id, u.k, t.v, u.at FROM u LEFT JOIN (SELECT k, max(v) AS v FROM t GROUP BY k) AS t ON u.k = t.k",
        "SELECT id, k, v, at FROM u WHERE k IN (SELECT k FROM t WHERE v > 1)")
      queries(partitions.nextInt(queries.size))
    }

    private def rows(number: Int): String = Seq.fill(number)(row()).mkString(", ")

    private def row(): String = {
      lastId += 1
      val at = draw(Seq("NULL", "'1990-01-01'", "'2026-01-01'", "'2026-02-02'", "'2190-01-01'"))
      // a row over which some queries fail, until it goes
      val v = if (lastId > 4 && random.nextInt(6) == 0) 0 else 1 + random.nextInt(3)
      s"($lastId, ${random.nextInt(3)}, $v, TIMESTAMP($at))"
    }

    private def draw[T](some: Seq[T]): T = some(random.nextInt(some.size))
  }
}

private object ViewLifePropertySuite {
  val Tables: Seq[String] = Seq("t", "u")
  val Views: Seq[String] = Seq("v1", "v2", "v3", "v4")
  val NumStatements = 12

  /** Mostly a view column is a function of these. */
  val Partitions: Seq[String] = Seq("", "PARTITIONED BY (k)", "PARTITIONED BY (id, k)")

  def literal(value: Any): String = value match {
    case null => "NULL"
    case time: java.sql.Timestamp => s"TIMESTAMP'$time'"
    case other => other.toString
  }
}
