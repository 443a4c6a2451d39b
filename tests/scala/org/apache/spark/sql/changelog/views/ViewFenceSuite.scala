// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import java.io.File
import java.nio.file.Files
import java.util.concurrent.{Callable, Executors, ThreadPoolExecutor, TimeUnit}

import scala.collection.mutable
import scala.util.{Failure, Success, Try}

import org.apache.spark.SparkThrowable

import org.apache.spark.sql.changelog.checkpoint.Fence
import org.apache.spark.sql.changelog.testing.{RowMultiset, Share}

/**
 * Another process takes the lease of a view at each effect of a statement, before and after the effect is checked. The
 * statement changes nothing from then on.
 */
trait ViewFenceTests extends EffectTest {
  import ViewFenceTests._

  /** The formats of the views. */
  protected def formats: Seq[String]

  /** The name of the view, and its next name if it can be renamed. */
  protected def name: String = "v"
  protected def renamed: Option[String] = Some("w")

  private val query = "SELECT customer, sum(amount) AS total FROM plain GROUP BY customer"
  private val same = "SELECT customer, sum(amount) + 0 AS total FROM plain GROUP BY customer"
  private val other = "SELECT customer, max(amount) AS total FROM plain GROUP BY customer"
  private val more =
    "SELECT customer, count(*) AS n, max(amount) AS total FROM plain GROUP BY customer"

  /** A thread that writes within no fence, as that of another process. */
  private val elsewhere = Executors.newFixedThreadPool(1).asInstanceOf[ThreadPoolExecutor]
  elsewhere.prestartAllCoreThreads()

  override def afterAll(): Unit = {
    elsewhere.shutdownNow()
    super.afterAll()
  }

  override def afterEach(): Unit = {
    super.afterEach()
    (name +: renamed.toSeq).foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
  }

  private def view: MaterializedView = new ViewCatalog(spark).get(name.split('.').toSeq)

  private def leases: File = new File(view.definition.home.toUri.getPath, ViewLease.Folder)

  private def renew(term: Long, hasEnded: Boolean): Unit = {
    val holder = s"""{"owner": "another", "process": "1@elsewhere", "since": "today",
      "renewals": 0, "isKept": false, "hasEnded": $hasEnded, "leaseMillis": 60000}"""
    // with the checksum of the one before it could not be read
    new File(leases, s".$term.crc").delete()
    Files.writeString(new File(leases, s"$term").toPath, holder)
    ()
  }

  /** Does what a process does that finds the lease expired. */
  private def takeOver(): Long = {
    val terms = leases.listFiles().flatMap(_.getName.toLongOption)
    val term = terms.max + 1
    renew(term, hasEnded = false)
    terms.foreach(old => new File(leases, s"$old").delete())
    ViewStorage(spark.cloneSession(), view).fence(view, term)
    term
  }

  /** What readers of the view see. */
  private def shown: Shown = {
    val session = spark.newSession()
    val properties = view.definition.toProperties
    Shown(RowMultiset.of(session.sql(s"SELECT * FROM $name").collect()), properties)
  }

  private def change(): Unit = {
    run("UPDATE plain SET amount = amount + 3 WHERE customer = 'Ada'")
    ()
  }

  /** Of how many effects of a statement a commit draws one. */
  protected def oneIn: Int = 3

  /** The effects of a statement. */
  private def effectsOf(statement: String): Seq[Effect] = {
    val found = mutable.Buffer.empty[Effect]
    Fence.onEffect = (name, isChecked) => {
      val number = found.count(effect => effect.name == name && effect.isChecked == isChecked)
      found += Effect(name, isChecked, number)
    }
    try run(statement)
    finally Fence.onEffect = (_, _) => ()
    found.toSeq
  }

  private def holdUp(statement: String, at: Effect, act: () => Long = () => takeOver()): Unit = {
    var taken: Option[Try[(Long, Shown)]] = None
    var number = -1
    Fence.onEffect = (name, isChecked) =>
      if (name == at.name && isChecked == at.isChecked) {
        number += 1
        if (number == at.number) {
          Fence.onEffect = (_, _) => ()
          val action = elsewhere.submit((() => (act(), shown)): Callable[(Long, Shown)])
          // The lost lease interrupts the statement meanwhile.
          def await(): (Long, Shown) =
            try action.get(60, TimeUnit.SECONDS)
            catch { case _: InterruptedException => await() }
          taken = Some(Try(await()))
        }
      }
    val outcome = Try(run(statement))
    assert(taken.nonEmpty, s"the statement never came there: $outcome")
    val (term, seen) =
      taken.get.fold(error => fail(s"the other process failed: $error", error), identity)
    outcome match {
      case Failure(error: SparkThrowable) =>
        assert(error.getCondition == "CHANGELOG_VIEW_LEASE_LOST")
        // what was decided before may be told to the catalog afterwards
        if (at != Effect("publish", isChecked = true, at.number)) assert(shown == seen)
      // only what nobody needs was left to delete
      case Success(_) => assert(at.isChecked && Set("delete", "publish")(at.name), statement)
      case Failure(error) => throw error
    }
    renew(term, hasEnded = true)
    change()
    run(s"REFRESH MATERIALIZED VIEW $name")
    val now = view.definition.query
    assert(RowMultiset.of(run(s"SELECT * FROM $name")) == RowMultiset.of(run(now)))
    assert(run(s"VERIFY MATERIALIZED VIEW $name").isEmpty)
  }

  /** Creates another view of the name, as a process does that finds the lease expired. Returns the term. */
  private def createAnother(): Long = {
    val session = spark.cloneSession()
    val before = view
    ViewStorage(session, before).drop(before)
    val definition =
      before.definition.copy(query = same, generation = None, otherCheckpoint = None)
    ViewStorage(session, before).create(before.copy(definition = definition))
    leases.mkdirs()
    renew(1, hasEnded = false)
    1
  }

  for {
    format <- formats
    (what, act) <- Seq[(String, () => Long)](
      "takes over" -> takeOver _,
      "creates" -> createAnother _)
  } test(s"$format: CREATE that fails removes nothing of a view that another process $what") {
    val create = s"CREATE MATERIALIZED VIEW $name USING $format AS $query"
    val effects = effectsOf(create)
    assert(effects.nonEmpty)
    run(s"DROP MATERIALIZED VIEW $name")
    Share.of(effects.filterNot(_.isChecked), oneIn).foreach { effect =>
      withClue(s"at $effect of $effects: ")(holdUp(create, effect, act))
      run(s"DROP MATERIALIZED VIEW $name")
    }
  }

  private def statements = Seq(
    s"REFRESH MATERIALIZED VIEW $name",
    s"REFRESH MATERIALIZED VIEW $name FULL",
    s"ALTER MATERIALIZED VIEW $name AS $other",
    s"ALTER MATERIALIZED VIEW $name AS $more",
    s"ALTER MATERIALIZED VIEW $name SET TBLPROPERTIES ('changelog.lag' = '5 minutes')",
    s"ALTER MATERIALIZED VIEW $name SET PARTITIONS 3",
    s"DROP MATERIALIZED VIEW $name") ++
    renamed.map(other => s"ALTER MATERIALIZED VIEW $name RENAME TO $other")

  for (format <- formats; statement <- statements) {
    test(s"$format: $statement changes nothing after another process has taken the lease") {
      def make(): Unit = {
        run(s"CREATE MATERIALIZED VIEW $name USING $format AS $query")
        change()
        run(s"REFRESH MATERIALIZED VIEW $name")
        change()
      }
      make()
      // a catalog that has no compare-and-set gives and takes names without one
      val effects = effectsOf(statement).filterNot { effect =>
        effect.isChecked && Set("drop", "rename")(effect.name)
      }
      assert(effects.nonEmpty)
      (name +: renamed.toSeq).foreach(name => run(s"DROP MATERIALIZED VIEW IF EXISTS $name"))
      Share.of(effects, oneIn).foreach { effect =>
        make()
        withClue(s"at $effect of $effects: ")(holdUp(statement, effect))
        run(s"DROP MATERIALIZED VIEW $name")
      }
    }
  }
}

class ViewFenceSuite extends ViewFenceTests {
  override protected def formats: Seq[String] = Seq("delta", "parquet")
}

private object ViewFenceTests {

  /** What a reader sees of a view. */
  case class Shown(rows: RowMultiset, properties: Map[String, String])

  /**
   * An effect of a statement.
   *
   * @param number
   *   how many of the same name come before
   */
  case class Effect(name: String, isChecked: Boolean, number: Int)
}
