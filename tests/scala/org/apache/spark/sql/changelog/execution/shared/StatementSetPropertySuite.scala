// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.shared

import scala.util.Random

import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions.{lit, struct}
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}

import org.apache.spark.sql.changelog.execution.shared.StatementSetPropertySuite._
import org.apache.spark.sql.changelog.testing._

/** Two or three random queries over the same tables, as one stream. Each folds to what batch Spark gives for it. */
class StatementSetPropertySuite extends SeedSuite(numSeeds = 9) {
  private lazy val oracle = new Oracle(spark)

  override protected lazy val spark: SparkSession =
    ChangelogSession.start(conf = ChangelogSession.Quick)

  override protected def checkSeed(seed: Long): Unit = {
    val (program, variant) = RandomProgram(seed)
    val random = new Random(seed * 31 + 5)
    val others = Seq.fill(1 + random.nextInt(2))(another(random, program))
    val queries = random.shuffle(program.sql +: others)
    oracle.sessions.withConf(variant.conf) {
      val kept = new KeptProgram(oracle.sessions, program, Seq(InMemory))
      try
        if (queries.forall(sql => oracle.accepts(program.copy(sql = sql))))
          check(kept, program, queries, random)
      catch {
        case error: Throwable =>
          val cause = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq.last
          val set = queries.mkString(";\n")
          throw new AssertionError(
            s"seed $seed, in variant [$variant]\n$cause\n$set\nof $program",
            error)
      } finally kept.close()
    }
  }

  private def check(
      kept: KeptProgram,
      program: Program,
      queries: Seq[String],
      random: Random): Unit = {
    val life = new SetLife(kept, queries)
    try
      program.steps.foreach { step =>
        kept.arrive(step, life.running)
        life.catchUp()
        // names the tables of the batch session, too
        kept.expected
        queries.zip(life.results).foreach { case (sql, result) =>
          val expected = RowMultiset.of(oracle.sessions.batch.sql(sql).collect())
          assert(result == expected, s"\nfolded:\n$result\nexpected:\n$expected\nof $sql")
        }
        if (random.nextInt(3) == 0) life.stop()
      }
    finally life.stop()
  }

  /** A query that has most in common with the program's query, or another query over the same tables. */
  private def another(random: Random, program: Program): String = {
    val sql = program.sql
    oracle.accepts(program)
    val columns = oracle.sessions.batch.sql(sql).columns.map(quoteIdentifier)
    val column = columns(random.nextInt(columns.length))
    random.nextInt(6) match {
      case 0 => sql
      case 1 => s"SELECT count(*) AS n, count($column) AS c FROM ($sql)"
      case 2 => s"SELECT $column AS c, count(*) AS n FROM ($sql) GROUP BY $column"
      case 3 => s"SELECT $column AS c FROM ($sql) WHERE $column IS NOT NULL"
      case 4 => s"SELECT DISTINCT $column AS c FROM ($sql) UNION ALL SELECT $column FROM ($sql)"
      case _ =>
        val relations = program.feeds.map { feed =>
          val of = feed.schema.map(field => RandomColumn(field.name, field.dataType))
          RandomRelation(feed.name, of, feed.key)
        }
        new RandomQuery(random, new RandomValues(random, wraps = false)).apply(relations).sql
    }
  }
}

private object StatementSetPropertySuite {

  /** The stream of the changes of several queries, which may stop and begin anew. */
  class SetLife(kept: KeptProgram, queries: Seq[String]) {
    private val checkpoint = QuickFileSystem.temporaryDirectory().getPath
    var running: Option[StreamingQuery] = None

    /** The rows of each query. */
    val results: Seq[RowMultiset] = queries.map(_ => new RowMultiset)

    def catchUp(): Unit = {
      if (running.isEmpty) running = Some(start())
      running.foreach(_.processAllAvailable())
    }

    def stop(): Unit = {
      running.foreach(_.stop())
      running = None
    }

    /** Has a column for each query, as a statement set of Python has. */
    private def start(): StreamingQuery = {
      val session = kept.session()
      val changes = queries.map(sql => session.sql(s"SELECT * FROM to_changelog(TABLE($sql))"))
      val rows = changes.map(of => StructType(of.schema.init))
      val parts = changes.zipWithIndex.map { case (of, number) =>
        val row = struct(of.columns.init.toSeq.map(name => of.col(quoteIdentifier(name))): _*)
        val columns = rows.zipWithIndex.map { case (schema, other) =>
          (if (other == number) row else lit(null).cast(schema)).as(s"row_$other")
        }
        of.select(columns :+ of.col(of.columns.last): _*)
      }
      parts
        .reduce(_ union _)
        .writeStream
        .option("checkpointLocation", checkpoint)
        .foreachBatch((batch: DataFrame, _: Long) => batch.collect().foreach(fold))
        .start()
    }

    private def fold(change: Row): Unit = {
      val comes = Set("insert", "update_postimage")(change.getString(queries.size))
      queries.indices.filterNot(change.isNullAt).foreach { number =>
        results(number).add(change.getStruct(number), if (comes) 1 else -1)
      }
    }
  }
}
