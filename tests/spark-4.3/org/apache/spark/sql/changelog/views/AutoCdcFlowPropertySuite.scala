// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.Random

import org.apache.spark.sql.connector.catalog.SharedTablesInMemoryRowLevelOperationTableCatalog

import org.apache.spark.sql.changelog.testing._

/**
 * AUTO CDC in a session gives the rows of Spark's own flow in a pipeline, after each batch of a random feed with late,
 * repeated and deleting events.
 */
class AutoCdcFlowPropertySuite extends SeedSuite(numSeeds = 3) with ViewSession {
  private val numBatches = 3

  /** How the column begins that Spark's flow adds to its tables. */
  private val Metadata = "__spark_autocdc_"

  override protected def checkSeed(seed: Long): Unit = {
    val random = new Random(seed)
    val columns =
      Seq("* EXCEPT (gone)", "* EXCEPT (gone, n)", "(k, a, b)", "(k, b, n, a)")(random.nextInt(4))
    val tracked =
      Seq("", "TRACK HISTORY ON (a)", "TRACK HISTORY ON * EXCEPT (a)")(random.nextInt(3))
    def flow(scdType: Int): String =
      s"""CREATE FLOW flow_$scdType AS AUTO CDC INTO rows_$scdType
         |FROM STREAM spark_catalog.default.feed KEYS (k) APPLY AS DELETE WHEN gone
         |SEQUENCE BY n COLUMNS $columns STORED AS SCD TYPE $scdType
         |${if (scdType == 2) tracked else ""}""".stripMargin
    val types = Seq(1, 2)
    val pipeline =
      types.map(n => s"CREATE STREAMING TABLE rows_$n;\n${flow(n)};").mkString("\n")
    val storage = QuickFileSystem.temporaryDirectory().toURI.toString
    spark.conf.set(
      "spark.sql.catalog.mem",
      classOf[SharedTablesInMemoryRowLevelOperationTableCatalog].getName)
    run("CREATE NAMESPACE IF NOT EXISTS mem.cdc")
    run("CREATE TABLE feed (k INT, a STRING, b INT, n INT, gone BOOLEAN) USING parquet")
    try
      for ((batch, number) <- batches(random).zipWithIndex) {
        run(s"INSERT INTO feed VALUES ${batch.mkString(", ")}")
        Pipelines.run(spark, Pipelines.graph(spark, pipeline, "mem", "cdc"), storage)
        for (scdType <- types) {
          if (number == 0) run(flow(scdType))
          else run(s"REFRESH MATERIALIZED VIEW rows_$scdType INCREMENTAL STRICT")
          val columns =
            spark.table(s"mem.cdc.rows_$scdType").columns.filterNot(_.startsWith(Metadata))
          def rows(table: String): Seq[String] =
            run(s"SELECT ${columns.mkString(", ")} FROM $table").map(TextChangelog.format).sorted
          val expected = rows(s"mem.cdc.rows_$scdType")
          val place = s"after batch $number of seed $seed: ${flow(scdType)}"
          assert(rows(s"rows_$scdType") == expected, place)
          assert(scdType == 1 || expected.nonEmpty, place)
        }
      }
    finally {
      types.foreach(scdType => run(s"DROP MATERIALIZED VIEW IF EXISTS rows_$scdType"))
      run("DROP TABLE feed")
      SharedTablesInMemoryRowLevelOperationTableCatalog.reset()
    }
  }

  /** Draws events as rows of VALUES. An event has its key's own number, and may come twice. */
  private def batches(random: Random): Seq[Seq[String]] = {
    val events = for (key <- 1 to 3; number <- 1 to 12 if random.nextInt(3) > 0) yield {
      val a = if (random.nextInt(4) == 0) "NULL" else s"'${"xy" (random.nextInt(2))}'"
      val b = if (random.nextInt(4) == 0) "NULL" else random.nextInt(2).toString
      s"($key, $a, $b, $number, ${random.nextInt(5) == 0})"
    }
    val all = random.shuffle(events ++ events.filter(_ => random.nextInt(5) == 0))
    all.grouped((all.size + numBatches - 1) / numBatches).toSeq
  }
}
