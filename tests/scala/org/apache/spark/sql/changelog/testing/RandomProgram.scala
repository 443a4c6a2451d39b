// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

import scala.util.Random

/** A program drawn by a seed, with a way to run it. The same for the same seed. */
object RandomProgram {
  private val AllColumns: Seq[String] = Seq(
    "a TINYINT",
    "b SMALLINT",
    "c INT",
    "d BIGINT",
    "e DECIMAL(5,2)",
    "f DECIMAL(20,3)",
    "g DECIMAL(38,10)",
    "h FLOAT",
    "i DOUBLE",
    "j STRING",
    "l DATE",
    "m TIMESTAMP",
    "n BOOLEAN",
    "o BINARY")

  def apply(seed: Long): (Program, Variant) = {
    val random = new Random(seed)
    // over BIGINT near its limits sums wrap, as they do in batch when ANSI mode is off
    val wraps = random.nextInt(3) == 0
    val values = new RandomValues(random, wraps)
    val feeds = this.feeds(random)
    val columns = feeds.head.schema.map(field => RandomColumn(field.name, field.dataType))
    val query = new RandomQuery(random, values)
      .apply(feeds.map(feed => RandomRelation(feed.name, columns, feed.key)))
    val program = Program(feeds, query.sql, steps(random, values, feeds))
    (program, variant(random, query.key, wraps))
  }

  /** One or two tables with the same columns. */
  private def feeds(random: Random): Seq[Feed] = {
    val columns = random.shuffle(AllColumns).take(4 + random.nextInt(4)).mkString(", ")
    val count = if (random.nextInt(5) == 0) 2 else 1
    (1 to count).map { number =>
      val feed = Feed(s"t$number", s"k INT, $columns")
      random.nextInt(8) match {
        case 0 | 1 => feed.copy(insertOnly = true)
        case 2 | 3 => feed.copy(key = Seq("k"))
        case 4 => feed.copy(key = Seq("k"), upsert = true)
        case _ => feed
      }
    }
  }

  /** What arrives, cut into batches of very different sizes; some are empty. */
  private def steps(random: Random, values: RandomValues, feeds: Seq[Feed]): Seq[Step] = {
    val changelogs = feeds.map(feed => feed -> new RandomChangelog(random, feed, values))
    Seq.fill(3 + random.nextInt(3)) {
      val size = Seq(0, 1, 3, 8, 15, 30)(random.nextInt(6))
      Step(changelogs.map { case (feed, changelog) =>
        feed.name -> Seq.fill(size)(changelog.next()).flatten
      }.toMap)
    }
  }

  private def variant(random: Random, key: Seq[String], wraps: Boolean): Variant = {
    def some(conf: Map[String, String]) = if (random.nextInt(3) == 0) conf else Map.empty
    val upsert = key.nonEmpty && random.nextInt(4) == 0
    val rocksDB = random.nextInt(5) == 0
    Variant(
      mode = if (upsert) "upsert" else "retract",
      key = if (upsert) key else Nil,
      restart = rocksDB || random.nextInt(8) == 0,
      conf = Map("spark.sql.ansi.enabled" -> (!wraps).toString) ++
        (if (rocksDB) Variant.RocksDB else Map.empty) ++
        some(Variant.OnePhase) ++
        some(Map("spark.sql.changelog.aggregate.headSize" -> "1")) ++
        (if (rocksDB) Map.empty else some(Variant.Paged)))
  }
}
