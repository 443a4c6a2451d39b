// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.util.Random

import org.apache.iceberg.FileFormat
import org.apache.iceberg.data.{GenericFileWriterFactory, GenericRecord, Record}
import org.apache.iceberg.expressions.Expressions
import org.apache.iceberg.io.OutputFileFactory
import org.apache.iceberg.types.Types
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.changelog.testing._

/** Views over Iceberg tables, which are followed by their snapshots. */
class IcebergTablesSuite
    extends AnyFunSuite
    with IcebergSession
    with ErrorChecks
    with BeforeAndAfterEach {

  private val revenue =
    "SELECT c.country, count(*) AS n, sum(o.amount) AS total FROM ice.db.orders o " +
      "JOIN ice.db.customers c USING (customer) GROUP BY ALL"
  private val amounts =
    "SELECT customer, count(*) AS n, sum(amount) AS total FROM ice.db.orders GROUP BY ALL"

  override def afterEach(): Unit = {
    run("DROP MATERIALIZED VIEW IF EXISTS v")
    Seq("orders", "customers").foreach(table => run(s"DROP TABLE IF EXISTS ice.db.$table"))
  }

  private def facts: Map[String, String] =
    run("DESCRIBE MATERIALIZED VIEW v").map(row => row.getString(0) -> row.getString(1)).toMap

  private def make(orders: String = "", customers: String = ""): Unit = {
    run(s"CREATE TABLE ice.db.orders (id INT, customer INT, amount DOUBLE) USING iceberg $orders")
    run(s"CREATE TABLE ice.db.customers (customer INT, country STRING) USING iceberg $customers")
    run("INSERT INTO ice.db.customers VALUES (1, 'NO'), (2, 'IT'), (3, NULL)")
    run("INSERT INTO ice.db.orders VALUES (1, 1, 10), (2, 1, 5.5), (3, 2, -0.0), (4, 3, 1)")
  }

  private def create(query: String): Unit =
    run(s"CREATE MATERIALIZED VIEW v USING delta AS $query")

  /** After a refresh the view equals its query, and was not computed anew. */
  private def check(query: String, how: String = "incremental"): Unit = {
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
    assert(facts("Last refresh").contains(s", $how,"), facts)
  }

  private def rowsRead: Long =
    spark.sql("SHOW REFRESHES OF v").select("rows_read").head().getLong(0)

  /** A refresh by changes fails by a condition, and reads all after that. */
  private def checkLost(condition: String, query: String): Unit = {
    checkError(condition)(run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
    check(query, "full")
    run("INSERT INTO ice.db.orders (id, customer, amount) VALUES (20, 1, 3)")
    check(query)
  }

  ways.foreach { case (name, format) =>
    test(s"tables with $name are followed by their snapshots") {
      make(s"PARTITIONED BY (bucket(2, customer)) $format", format)
      create(revenue)
      check(revenue)
      Seq(
        Seq(
          "UPDATE ice.db.orders SET amount = amount + 1 WHERE id = 2",
          "DELETE FROM ice.db.customers WHERE customer = 2"),
        Seq(
          """MERGE INTO ice.db.orders t USING (SELECT * FROM VALUES (1, 3, 7.0), (9, 2, 2.5) AS s(id, customer, amount)) s
            |ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""".stripMargin,
          "INSERT INTO ice.db.customers VALUES (2, 'NO'), (2, 'NO')",
          "CALL ice.system.rewrite_data_files(table => 'db.orders', options => map('rewrite-all', 'true'))"),
        Seq(
          "DELETE FROM ice.db.orders WHERE id = 9",
          "INSERT OVERWRITE ice.db.customers VALUES (1, 'SE'), (2, 'SE')"),
        Seq("TRUNCATE TABLE ice.db.orders")).foreach { statements =>
        statements.foreach(run)
        withClue(statements)(check(revenue))
      }
      assert(run("VERIFY MATERIALIZED VIEW v").isEmpty)
    }

    test(s"random changes of a table with $name") {
      (1 to (if (Share.isAll) 5 else 1)).foreach { seed =>
        val random = new Random(seed)
        make(format)
        create(amounts)
        (1 to 12).foreach { round =>
          val statements = Seq.fill(1 + random.nextInt(3))(change(random))
          statements.foreach(run)
          withClue(s"seed $seed, round $round: $statements")(check(amounts))
        }
        afterEach()
      }
    }
  }

  private def change(random: Random): String = {
    val table = "ice.db.orders"
    val (id, customer) = (random.nextInt(12), random.nextInt(4))
    random.nextInt(10) match {
      case 0 | 1 | 2 =>
        val rows = Seq.fill(1 + random.nextInt(3))(s"(${random.nextInt(12)}, $customer, $id)")
        s"INSERT INTO $table VALUES ${rows.mkString(", ")}"
      case 3 => s"UPDATE $table SET amount = amount + 1 WHERE id > $id"
      case 4 => s"UPDATE $table SET customer = $customer WHERE id = $id"
      case 5 => s"DELETE FROM $table WHERE id = $id"
      case 6 =>
        s"MERGE INTO $table t USING (SELECT $id AS id) s ON t.id = s.id " +
          s"WHEN MATCHED THEN UPDATE SET amount = -1 WHEN NOT MATCHED THEN INSERT (id, customer, amount) VALUES ($id, $customer, 0)"
      case 7 =>
        "CALL ice.system.rewrite_data_files(table => 'db.orders', options => map('rewrite-all', 'true'))"
      case 8 =>
        "CALL ice.system.rewrite_position_delete_files(table => 'db.orders', options => map('rewrite-all', 'true'))"
      case _ =>
        val snapshots = run(s"SELECT snapshot_id FROM $table.history WHERE is_current_ancestor")
        val snapshot = snapshots(random.nextInt(snapshots.size)).getLong(0)
        s"CALL ice.system.rollback_to_snapshot('db.orders', $snapshot)"
    }
  }

  test("compaction is passed over") {
    make(written("merge-on-read", 2))
    create(amounts)
    run("INSERT INTO ice.db.orders VALUES (6, 1, 1)")
    check(amounts) // computes the state
    run("INSERT INTO ice.db.orders VALUES (5, 1, 1)")
    call("rewrite_data_files", "orders", "options => map('rewrite-all', 'true')")
    call("rewrite_manifests", "orders")
    check(amounts)
    assert(rowsRead == 1)
    run("DELETE FROM ice.db.orders WHERE id = 1")
    check(amounts)
    assert(rowsRead > 0)
    call("rewrite_data_files", "orders", "options => map('rewrite-all', 'true')")
    check(amounts)
    assert(rowsRead == 0)
  }

  test("equality deletes are applied") {
    make()
    create(amounts)
    val table = api("orders")
    val deleted = table.schema.select("customer")
    val factory = new GenericFileWriterFactory.Builder(table)
      .deleteFileFormat(FileFormat.PARQUET)
      .equalityFieldIds(Array(table.schema.findField("customer").fieldId))
      .equalityDeleteRowSchema(deleted)
      .build()
    val file = OutputFileFactory.builderFor(table, 1, 1).format(FileFormat.PARQUET).build()
    val writer = factory.newEqualityDeleteWriter(file.newOutputFile(), table.spec, null)
    val row: Record = GenericRecord.create(deleted)
    row.setField("customer", Int.box(1))
    writer.write(row)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile).commit()
    run("REFRESH TABLE ice.db.orders")
    run("INSERT INTO ice.db.orders VALUES (7, 1, 8)")
    check(amounts)
    assert(run("SELECT n FROM v WHERE customer = 1").map(_.getLong(0)) == Seq(1L))
  }

  test("commits by others are seen, whatever the catalog remembers") {
    make()
    create(amounts)
    run("INSERT INTO other.db.orders VALUES (8, 1, 8)")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    run("REFRESH TABLE ice.db.orders") // or the query reads older rows
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(amounts)))
    assert(run("SELECT n FROM v WHERE customer = 1").map(_.getLong(0)) == Seq(3L))
  }

  test("another partitioning is followed") {
    make("PARTITIONED BY (customer)")
    create(revenue)
    run("ALTER TABLE ice.db.orders ADD PARTITION FIELD bucket(4, id)")
    run("ALTER TABLE ice.db.orders DROP PARTITION FIELD customer")
    run("INSERT INTO ice.db.orders VALUES (5, 1, 1), (6, 2, 2)")
    check(revenue)
    run("UPDATE ice.db.orders SET amount = 0 WHERE customer = 1")
    check(revenue)
  }

  test("state goes on when a table gets columns, whose old rows have NULL or a default") {
    ways.foreach { case (name, format) =>
      withClue(name) {
        make(format)
        create(revenue)
        check(revenue)
        run("INSERT INTO ice.db.orders VALUES (5, 1, 2)")
        run("ALTER TABLE ice.db.orders ADD COLUMN note STRING")
        run("ALTER TABLE ice.db.orders ADD PARTITION FIELD bucket(2, customer)")
        run("INSERT INTO ice.db.orders VALUES (6, 3, 7, 'x')")
        run("ALTER TABLE ice.db.orders ADD COLUMN more STRUCT<a: INT>")
        run("UPDATE ice.db.orders SET amount = 11, note = 'y' WHERE id = 1")
        run("DELETE FROM ice.db.orders WHERE id = 2")
        check(revenue)
        call("rewrite_data_files", "orders", "options => map('rewrite-all', 'true')")
        run("DELETE FROM ice.db.orders WHERE id = 6")
        check(revenue)
        afterEach()
      }
    }
    make(written("merge-on-read", 3))
    run(
      "CREATE MATERIALIZED VIEW v USING delta TBLPROPERTIES ('changelog.onSchemaChange' = 'evolve') " +
        "AS SELECT * FROM ice.db.orders")
    api("orders")
      .updateSchema()
      .addColumn("rate", Types.IntegerType.get, "", Expressions.lit(7))
      .commit()
    run("REFRESH TABLE ice.db.orders")
    run("REFRESH MATERIALIZED VIEW v")
    val rows = "SELECT * FROM ice.db.orders"
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(rows)))
    assert(run("SELECT min(rate) FROM v").map(_.getInt(0)) == Seq(7))
    run("UPDATE ice.db.orders SET rate = 8 WHERE id = 1")
    run("DELETE FROM ice.db.orders WHERE id = 2")
    check(rows)
  }

  test("a table with other columns is read as a whole") {
    make()
    create(revenue)
    run("ALTER TABLE ice.db.orders ADD COLUMN note STRING FIRST")
    checkLost("CHANGELOG_TABLE_COLUMNS_CHANGED", revenue)
    // a column of the same name, with other values
    run("ALTER TABLE ice.db.orders DROP COLUMN amount")
    run("ALTER TABLE ice.db.orders ADD COLUMN amount DOUBLE")
    checkLost("CHANGELOG_TABLE_COLUMNS_CHANGED", revenue)
    run("ALTER TABLE ice.db.orders ALTER COLUMN customer COMMENT 'who'")
    run("DELETE FROM ice.db.orders WHERE id = 4")
    check(revenue)
  }

  test("a table whose snapshot has expired, or that was made anew, is read as a whole") {
    make()
    create(revenue)
    run("INSERT INTO ice.db.orders VALUES (5, 1, 1)")
    call("expire_snapshots", "orders", "older_than => TIMESTAMP '2100-01-01'", "retain_last => 1")
    checkLost("CHANGELOG_TABLE_CHANGES_LOST", revenue)
    run("DROP TABLE ice.db.orders")
    run("CREATE TABLE ice.db.orders (id INT, customer INT, amount DOUBLE) USING iceberg")
    checkLost("CHANGELOG_TABLE_REPLACED", revenue)
  }

  test("rows are right with expired snapshots in between, and after a rollback") {
    make()
    create(amounts)
    run("ALTER TABLE ice.db.orders CREATE TAG kept")
    val first = api("orders").currentSnapshot.snapshotId
    run("INSERT INTO ice.db.orders VALUES (5, 1, 1)")
    run("UPDATE ice.db.orders SET amount = 2 WHERE id = 5")
    call("rewrite_data_files", "orders", "options => map('rewrite-all', 'true')")
    call("expire_snapshots", "orders", "older_than => TIMESTAMP '2100-01-01'", "retain_last => 1")
    check(amounts)
    call("set_current_snapshot", "orders", s"snapshot_id => $first")
    check(amounts)
  }

  test("branches and tags are followed by their names") {
    make()
    run("ALTER TABLE ice.db.orders CREATE BRANCH trial")
    run("ALTER TABLE ice.db.orders CREATE TAG approved")
    val query = "SELECT customer, count(*) AS n FROM ice.db.orders.branch_trial GROUP BY ALL " +
      "UNION ALL SELECT customer, count(*) AS n FROM ice.db.orders.tag_approved GROUP BY ALL"
    create(query)
    run("INSERT INTO ice.db.orders.branch_trial VALUES (5, 1, 1)")
    run("INSERT INTO ice.db.orders VALUES (6, 1, 1)")
    check(query)
    run(
      "ALTER TABLE ice.db.orders REPLACE TAG approved AS OF VERSION " +
        api("orders").currentSnapshot.snapshotId)
    check(query)
    assert(run("SELECT sum(n) FROM v").head.getLong(0) == 10)
  }

  test("a branch or tag in VERSION AS OF moves") {
    make()
    run("ALTER TABLE ice.db.orders CREATE BRANCH trial")
    val query =
      "SELECT customer, count(*) AS n FROM ice.db.orders VERSION AS OF 'trial' GROUP BY ALL"
    create(query)
    run("INSERT INTO ice.db.orders.branch_trial VALUES (5, 1, 1)")
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
  }

  test("metadata tables, time travel and statements of Iceberg stay as they are") {
    make()
    create(amounts)
    val first = api("orders").currentSnapshot.snapshotId
    run("INSERT INTO ice.db.orders VALUES (5, 1, 1)")
    assert(run("SELECT * FROM ice.db.orders.snapshots").size == 2)
    assert(run(s"SELECT * FROM ice.db.orders VERSION AS OF $first").size == 4)
    run("ALTER TABLE ice.db.orders WRITE ORDERED BY id")
    check(amounts)
    run("DROP MATERIALIZED VIEW v")
    val snapshots =
      "SELECT is_current_ancestor, count(*) AS n FROM ice.db.orders.history GROUP BY ALL"
    create(snapshots)
    run("DELETE FROM ice.db.orders WHERE id = 5")
    run("REFRESH MATERIALIZED VIEW v")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(snapshots)))
  }

  test("a stream of a table with updates fails by a name that says what to do") {
    make()
    run("CREATE MATERIALIZED VIEW v USING delta AS SELECT id, amount FROM STREAM ice.db.orders")
    run("UPDATE ice.db.orders SET amount = 0 WHERE id = 1")
    checkError("CHANGELOG_STREAM_OF_CHANGED_TABLE")(
      run("REFRESH MATERIALIZED VIEW v INCREMENTAL"))
  }
}

/** Iceberg's extension before ours. */
class IcebergFirstSuite extends AnyFunSuite with IcebergSession {
  override protected def extensions: Seq[String] = super.extensions.reverse

  test("statements of both extensions run in either order") {
    run("CREATE TABLE ice.db.pairs (id INT, n INT) USING iceberg")
    run("INSERT INTO ice.db.pairs VALUES (1, 1), (2, 2)")
    val query = "SELECT n, count(*) AS ids FROM ice.db.pairs GROUP BY n"
    run(s"CREATE MATERIALIZED VIEW v USING delta AS $query")
    run("ALTER TABLE ice.db.pairs ADD PARTITION FIELD n")
    run("""MERGE INTO ice.db.pairs t USING (SELECT 1 AS id, 2 AS n) s ON t.id = s.id
          |WHEN MATCHED THEN UPDATE SET *""".stripMargin)
    call("rewrite_data_files", "pairs", "options => map('rewrite-all', 'true')")
    run("REFRESH MATERIALIZED VIEW v INCREMENTAL")
    assert(RowMultiset.of(run("SELECT * FROM v")) == RowMultiset.of(run(query)))
  }
}
