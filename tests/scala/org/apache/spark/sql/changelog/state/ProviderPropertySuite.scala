// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.state

import scala.util.Random
import scala.util.control.NonFatal

import org.scalatest.funsuite.AnyFunSuite

import org.apache.spark.sql.execution.streaming.state.{ReadStateStore, StateStore}

import org.apache.spark.sql.changelog.testing.{FailingCheckpointFiles, QuickFileSystem, Share}

/**
 * Whatever happens to attempts, a version is what its files say: random batches, repeated, aborted
 * and failed at any write, on two executors, with maintenance and restarts in between.
 */
class ProviderPropertySuite extends AnyFunSuite with ProviderFixture {
  import FailingCheckpointFiles._

  private val seeds =
    sys.env
      .get("CHANGELOG_PROPERTY_SEED")
      .map(seed => Seq(seed.toInt))
      .getOrElse(Share.of(1 to 40, oneIn = 2))

  seeds.foreach { seed =>
    test(s"a store's life, seed $seed")(new Life(seed).live(steps = 200))
  }

  private class Life(seed: Int) {
    private val random = new Random(seed)
    private val directory = QuickFileSystem.temporaryDirectory()
    private val conf = Map(
      "spark.sql.streaming.stateStore.minDeltasForSnapshot" -> (1 + random.nextInt(2)).toString,
      "spark.sql.streaming.minBatchesToRetain" -> (2 + random.nextInt(5)).toString,
      "spark.sql.streaming.stateStore.rowChecksum.enabled" -> random.nextBoolean().toString,
      "spark.sql.streaming.stateStore.compression.codec" ->
        Seq("lz4", "zstd", "snappy", "lzf")(random.nextInt(4)),
      "spark.sql.streaming.stateStore.pages.heapFraction" -> (seed % 2 * 0.4).toString)
    private val providers = Array.fill(2)(paged(directory, conf))

    // by version, what is in it and from which changes the next one is made
    private var contents = Vector[Model](Map.empty)
    private var changes = Vector.empty[Int]

    private def last: Int = contents.size - 1

    private def oneOf(index: Int): PagedStateProvider = providers(index)

    def live(steps: Int): Unit = (1 to steps).foreach { step =>
      val here = random.nextInt(providers.length)
      withClue(s"step $step, version $last: ") {
        random.nextInt(12) match {
          case 0 | 1 | 2 | 3 => batch(here)
          case 4 => abandon(here)
          case 5 | 6 if last > 0 => repeat(here)
          case 7 if last > 0 => another(here)
          case 8 => check(oneOf(here).getReadStore(last), last)
          case 9 => mayFail(".snapshot")(oneOf(here).doMaintenance())
          case 10 => begin(here)
          case _ => checkFiles()
        }
      }
    }

    private def batch(here: Int): Unit = {
      val number = random.nextInt()
      if (attempt(here, last, number)) {
        contents :+= changed(contents.last, number)
        changes :+= number
      }
    }

    /** As when a stage runs again, or a batch after its query was killed. */
    private def repeat(here: Int): Unit = attempt(here, last - 1, changes.last)

    /** A batch that gives something else when it runs again, which a query does at a restart only. */
    private def another(here: Int): Unit = {
      val number = random.nextInt()
      providers.indices.foreach(begin)
      var isDone = false
      while (!isDone) isDone = attempt(here, last - 1, number)
      contents = contents.init :+ changed(contents(last - 1), number)
      changes = changes.init :+ number
    }

    private def begin(here: Int): Unit = {
      providers(here).close()
      providers(here) = paged(directory, conf)
    }

    private def attempt(here: Int, version: Int, number: Int): Boolean = {
      val store = open(here, version)
      write(store, number)
      try {
        mayFail(if (random.nextInt(3) == 0) ".snapshot" else ".delta")(store.commit())
        true
      } catch {
        case NonFatal(_) =>
          (0 to random.nextInt(2)).foreach(_ => store.abort())
          false
      }
    }

    private def abandon(here: Int): Unit = {
      val version = last - (if (last > 0) random.nextInt(2) else 0)
      val store = open(here, version)
      write(store, random.nextInt())
      (0 to random.nextInt(2)).foreach(_ => store.abort())
      intercept[IllegalStateException](put(store, (1, 1) -> 1))
      intercept[Exception](store.commit())
    }

    private def open(here: Int, version: Int): StateStore = {
      val store = oneOf(here).openStore(version, None, random.nextInt(4) == 0, loadEmpty = false)
      check(store, version)
      store
    }

    private def write(store: StateStore, number: Int): Unit = steps(number).foreach {
      case (key, Some(n)) => put(store, key -> n)
      case ((a, b), None) => store.remove(key(a, b))
    }

    private def changed(before: Model, number: Int): Model = steps(number).foldLeft(before) {
      case (model, (key, Some(n))) => model + (key -> n)
      case (model, (key, None)) => model - key
    }

    private def steps(number: Int): Seq[((Int, Int), Option[Int])] = {
      val random = new Random(number)
      Seq.fill(random.nextInt(30)) {
        val key = (random.nextInt(4), random.nextInt(8))
        key -> Option.when(random.nextInt(3) > 0)(random.nextInt())
      }
    }

    private def mayFail[T](nameEnd: String)(body: => T): T = random.nextInt(8) match {
      case 0 => failing(nameEnd, AtCreation)(body)
      case 1 => failing(nameEnd, Within(random.nextInt(100)))(body)
      case 2 => failing(nameEnd, AtClose)(body)
      case 3 => failing(nameEnd, AfterClose)(body)
      case _ => body
    }

    private def checkFiles(): Unit = {
      check(paged(directory, conf).getReadStore(last), last)
      check(spark(directory, conf).getReadStore(last, None), last)
    }

    private def check(store: ReadStateStore, version: Int): Unit =
      assert(content(store) == contents(version), s"in $version")
  }
}
