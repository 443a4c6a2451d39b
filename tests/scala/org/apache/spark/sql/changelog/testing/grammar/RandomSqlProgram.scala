// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing.grammar

import scala.util.Random

import org.apache.spark.sql.changelog.testing._

/**
 * A query of any shape over three small tables, drawn by a seed, with a way to run it. The same for
 * the same seed.
 */
object RandomSqlProgram {
  private val columns =
    s"k INT, x INT, n BIGINT, d ${Types.Decimal.sql}, f DOUBLE, s STRING, t DATE, b BOOLEAN, a ARRAY<INT>"

  private val FewColumns = "k INT, x INT, f DOUBLE, s STRING, b BOOLEAN, a ARRAY<INT>"

  private val MoreColumns = Seq(
    s"m ${Types.BigDecimal.sql}",
    s"g ${Types.Days.sql}",
    s"y ${Types.Months.sql}",
    s"l ${Types.collated.head.sql}",
    s"u ${Types.collated.last.sql}",
    "c CHAR(3)",
    "h VARCHAR(4)")

  /** The functions that queries may call, to be made in each session. */
  val functions: Seq[String] = Seq(
    "twice(x INT) RETURNS INT RETURN 2 * x",
    """copies(x INT) RETURNS TABLE (n INT, s STRING)
      |RETURN SELECT e % 10, CAST(x AS STRING) FROM explode(array(x, 1, NULL)) AS v(e)
      |WHERE e > 0 OR e IS NULL""".stripMargin,
    """near(x INT) RETURNS TABLE (n INT, s STRING)
      |RETURN SELECT n, s FROM VALUES (0, 'a'), (1, 'b'), (1, NULL) AS v(n, s)
      |WHERE n = pmod(x, 3)""".stripMargin).map("CREATE OR REPLACE TEMPORARY FUNCTION " + _)

  /**
   * @param hasAllTables
   *   whether the program has the tables too that its query doesn't read
   */
  def apply(
      seed: Long,
      grammar: Grammar = Grammar.Narrow,
      hasAllTables: Boolean = false): (Program, Variant) = {
    val random = new Random(seed)
    val values = new RandomValues(random, wraps = false, small = true)
    val draw = new Draw(random, grammar)
    val columns = if (draw.isWidest) this.columns(random) else this.columns
    val feeds = (1 to 3).map(number => feed(random, s"t$number", columns, draw.isWide))
    val table = feeds.head.schema.map(field => Column(field.name, field.dataType))
    val forms = if (draw.isWide) TableForms(random, feeds) else Nil
    val queries = new Queries(draw, feeds.map(_.name) ++ forms.map(_.name), table)
    val drawn = shown(queries.query(depth = Seq(1, 1, 2, 2, 3)(random.nextInt(5))))
    val names = new Random(~seed)
    val aliased =
      if (draw.isWidest) feeds.filter(_ => names.nextBoolean()).map(TableForms.aliased(names, _))
      else Nil
    val query = if (draw.isWidest) TableForms.named(names, through(aliased, drawn)) else drawn
    val views = forms ++ aliased
    val changelogs = feeds.map { feed =>
      val nullsOneIn = if (draw.isWide) 2 + random.nextInt(8) else 9
      feed -> new RandomChangelog(random, feed, values, nullsOneIn)
    }
    val steps = (0 until 3).map { number =>
      Step(changelogs.map { case (feed, changelog) =>
        val size = if (number == 0) 4 + random.nextInt(8) else Seq(0, 1, 2, 5)(random.nextInt(4))
        feed.name -> Seq.fill(size)(changelog.next()).flatten
      }.toMap)
    }
    def reads(name: String) = s"\\b$name\\b".r.findFirstIn(query.sql).isDefined
    val named = views.filter(view => reads(view.name))
    val read =
      feeds.filter(feed =>
        hasAllTables || reads(feed.name) || named.exists(_.reads.contains(feed.name)))
    val made = named.map(view => view.name -> view.make).toMap
    (Program(read, query.sql, steps, made), variant(random))
  }

  /** The columns of all tables; those of the tables' forms are always among them. */
  private def columns(random: Random): String = {
    val more = random.shuffle(MoreColumns).take(4)
    val variant = if (random.nextInt(4) == 0) Seq("v VARIANT") else Nil
    (FewColumns +: (more ++ variant)).mkString(", ")
  }

  /** The query with views in place of the tables they read. */
  private def through(views: Seq[TableForm], query: Query): Query =
    query.copy(sql = views.foldLeft(query.sql) { (sql, view) =>
      sql.replaceAll(s"\\b${view.reads.head}\\b", view.name)
    })

  /** The query without texts that batch Spark might give as others. */
  private def shown(query: Query): Query =
    if (!query.types.exists(Types.collated.contains)) query
    else {
      val outputs = query.columns.map { column =>
        if (!Types.collated.contains(column.dataType)) column.sql
        else s"${CollatedExpressions.plain(column.sql)} AS ${column.sql}"
      }
      query.copy(sql = s"SELECT ${outputs.mkString(", ")} FROM (${query.sql})")
    }

  private def feed(random: Random, name: String, columns: String, isWide: Boolean): Feed = {
    val feed = Feed(name, columns)
    if (isWide && random.nextInt(4) == 0)
      feed.copy(key = Seq("f"), upsert = random.nextBoolean())
    else
      random.nextInt(6) match {
        case 0 => feed.copy(insertOnly = true)
        case 1 | 2 => feed.copy(key = Seq("k"))
        case 3 => feed.copy(key = Seq("k"), upsert = true)
        case _ => feed
      }
  }

  private def variant(random: Random): Variant = Variant(
    restart = random.nextInt(6) == 0,
    conf = Seq(
      8 -> Variant.RocksDB,
      8 -> Variant.OnePhase,
      2 -> Interpreted,
      4 -> Variant.Paged).flatMap { case (times, conf) =>
      if (random.nextInt(times) == 0) conf else Nil
    }.toMap)

  private val Interpreted =
    ChangelogSession.Interpreted + ("spark.sql.shuffle.partitions" -> "1")
}
