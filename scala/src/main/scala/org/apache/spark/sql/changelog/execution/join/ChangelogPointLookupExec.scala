// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.join

import java.sql.{PreparedStatement, Types}
import java.time.Duration
import java.util.concurrent.{ConcurrentLinkedQueue, ExecutionException, Future}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.google.common.cache.{Cache, CacheBuilder}

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.plans.{JoinType, LeftAnti, LeftOuter, LeftSemi}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.ThreadUtils

import org.apache.spark.sql.changelog.plans.{ChangelogJoin, LookedUpTable}

/**
 * ChangelogPointLookup: joins each row with the rows of a database table that have the row's key.
 *
 * Each task takes rows in groups, and asks the database for the distinct keys of a group in one
 * query. Several queries run at a time, each on a connection of its own. The order of rows stays.
 *
 * @param limits
 *   how many keys a query has, how many queries run at a time in a task, and what is cached
 */
case class ChangelogPointLookupExec(
    joinType: JoinType,
    leftKey: Seq[Expression],
    table: LookedUpTable,
    condition: Option[Expression],
    limits: LookupLimits,
    child: SparkPlan)
    extends UnaryExecNode {

  override def output: Seq[Attribute] = ChangelogJoin.output(joinType, child.output, table.output)

  override def producedAttributes: AttributeSet = AttributeSet(table.read ++ table.output)

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numKeysLookedUp" -> SQLMetrics.createMetric(sparkContext, "number of keys looked up"),
    "numKeysCached" -> SQLMetrics.createMetric(sparkContext, "number of keys found in the cache"),
    "numRowsRead" -> SQLMetrics.createMetric(sparkContext, "number of rows read"))

  override protected def doExecute(): RDD[InternalRow] = {
    val (rowsOut, keysRead) = (longMetric("numOutputRows"), longMetric("numKeysLookedUp"))
    val (keysCached, rowsRead) = (longMetric("numKeysCached"), longMetric("numRowsRead"))
    val (left, key, lookedUp, bounds) = (child.output, leftKey, table, limits)
    val joins = new JoinRows(joinType, condition, left, table.output, output)
    child.execute().mapPartitionsInternal { rows =>
      val keyOf = UnsafeProjection.create(key, left)
      val reader = new TableReader(lookedUp, bounds)
      val join = joins.inTask()
      val groups = rows.map(_.copy()).grouped(bounds.keysPerQuery)
      val begun = mutable.Queue.empty[(Seq[InternalRow], Future[FoundRows])]
      def begin(): Unit =
        while (begun.size < bounds.queries && groups.hasNext) {
          val group = groups.next()
          val keys = group.map(keyOf(_).copy()).filterNot(_.anyNull).distinct
          begun.enqueue(group -> reader.begin(keys))
        }
      new Iterator[Iterator[InternalRow]] {
        override def hasNext: Boolean = begun.nonEmpty || groups.hasNext

        override def next(): Iterator[InternalRow] = {
          begin()
          val (group, future) = begun.dequeue()
          val found =
            try future.get()
            catch { case error: ExecutionException => throw error.getCause }
          begin()
          keysRead += found.numKeysRead
          keysCached += found.numKeysCached
          rowsRead += found.numRowsRead
          group.iterator.flatMap(row => join(row, found.rows.getOrElse(keyOf(row), Nil)))
        }
      }.flatten.map { row =>
        rowsOut += 1
        row
      }
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): ChangelogPointLookupExec =
    copy(child = newChild)
}

/** Joins a left row with the rows of its key. */
private class JoinRows(
    joinType: JoinType,
    condition: Option[Expression],
    left: Seq[Attribute],
    right: Seq[Attribute],
    output: Seq[Attribute])
    extends Serializable {

  /** Returns the function for the rows of one task. */
  def inTask(): (InternalRow, Seq[InternalRow]) => Iterator[InternalRow] = {
    val both = left ++ right.map(_.withNullability(true))
    val matches = condition.map(Predicate.create(_, both))
    val joined = new JoinedRow
    val toResult = UnsafeProjection.create(output, both)
    val noRow = new GenericInternalRow(right.size)
    (row, found) => {
      val matching = found.iterator.filter(other => matches.forall(_.eval(joined(row, other))))
      joinType match {
        case LeftSemi => if (matching.isEmpty) Iterator.empty else Iterator.single(row)
        case LeftAnti => if (matching.isEmpty) Iterator.single(row) else Iterator.empty
        case LeftOuter if matching.isEmpty => Iterator.single(toResult(joined(row, noRow)))
        case _ => matching.map(other => toResult(joined(row, other)))
      }
    }
  }
}

/**
 * @param keysPerQuery
 *   the number of rows whose keys are asked for in one query
 * @param queries
 *   the number of queries that a task runs at a time
 * @param cachedKeys
 *   the number of keys that each executor caches, with their rows
 * @param cacheSeconds
 *   how long a key stays in the cache
 */
case class LookupLimits(keysPerQuery: Int, queries: Int, cachedKeys: Int, cacheSeconds: Long)

/** The rows of a group's keys. */
private case class FoundRows(
    rows: Map[UnsafeRow, Seq[InternalRow]],
    numKeysRead: Long,
    numKeysCached: Long,
    numRowsRead: Long)

/** Reads rows of a table by key, for one task. */
private class TableReader(table: LookedUpTable, limits: LookupLimits) {
  private val threads =
    ThreadUtils.newDaemonFixedThreadPool(limits.queries, "changelog-point-lookup")
  private val unused = new ConcurrentLinkedQueue[TableConnection]()
  private val opened = new ConcurrentLinkedQueue[TableConnection]()
  private val cache = Option.when(limits.cachedKeys > 0)(TableReader.cache(table, limits))

  TaskContext.get().addTaskCompletionListener[Unit] { _ =>
    threads.shutdownNow()
    opened.asScala.foreach(_.close())
  }

  /** Begins to read the rows of keys. */
  def begin(keys: Seq[UnsafeRow]): Future[FoundRows] = threads.submit { () =>
    val cached = cache.toSeq.flatMap { cache =>
      keys.flatMap(key => Option(cache.getIfPresent(key)).map(key -> _))
    }.toMap
    val missing = keys.filterNot(cached.contains)
    val (read, count) =
      if (missing.isEmpty) (Map.empty[UnsafeRow, Seq[InternalRow]], 0L) else readRows(missing)
    cache.foreach(cache => missing.foreach(key => cache.put(key, read.getOrElse(key, Nil))))
    FoundRows(cached ++ read, missing.size.toLong, cached.size.toLong, count)
  }

  private def readRows(keys: Seq[UnsafeRow]): (Map[UnsafeRow, Seq[InternalRow]], Long) = {
    val connection = Option(unused.poll()).getOrElse {
      val connection = new TableConnection(table)
      opened.add(connection)
      connection
    }
    val found = connection.read(keys)
    unused.add(connection)
    found
  }
}

/** A connection to a table's database, for one query at a time. */
private class TableConnection(table: LookedUpTable) extends AutoCloseable {
  private val keyOf = UnsafeProjection.create(table.key, table.read)
  private val columnsOf = UnsafeProjection.create(table.columns, table.read)
  private val passes = table.filters.reduceOption(And(_, _)).map(Predicate.create(_, table.read))
  private val names = table.key.map(column => table.source.quoted(column.name))
  private val types = table.key.map(_.dataType)
  private val isPostgres = table.source.url.startsWith("jdbc:postgresql:")
  private val connection = table.source.connect()

  override def close(): Unit = connection.close()

  /** Returns the rows by key, and the number of rows read. */
  def read(keys: Seq[UnsafeRow]): (Map[UnsafeRow, Seq[InternalRow]], Long) = {
    val found = mutable.Map.empty[UnsafeRow, mutable.Buffer[InternalRow]]
    val wanted = keys.toSet
    val count =
      table.source.read(connection, table.schema, condition(keys.size), setKeys(_, keys)) { row =>
        val key = keyOf(row)
        // The database may equate more texts than Spark.
        if (wanted.contains(key) && passes.forall(_.eval(row)))
          found.getOrElseUpdate(key.copy(), mutable.Buffer.empty) += columnsOf(row).copy()
      }
    (found.view.mapValues(_.toSeq).toMap, count)
  }

  private def condition(numKeys: Int): String =
    if (names.size == 1) Seq.fill(numKeys)("?").mkString(s"${names.head} IN (", ", ", ")")
    else Seq.fill(numKeys)(names.map(_ + " = ?").mkString("(", " AND ", ")")).mkString(" OR ")

  private def setKeys(statement: PreparedStatement, keys: Seq[UnsafeRow]): Unit =
    keys.flatMap(_.toSeq(types)).zipWithIndex.foreach {
      case (text: UTF8String, at) if isPostgres =>
        // The server infers the type, such as UUID.
        statement.setObject(at + 1, text.toString, Types.OTHER)
      case (text: UTF8String, at) => statement.setString(at + 1, text.toString)
      case (number: Decimal, at) => statement.setBigDecimal(at + 1, number.toJavaBigDecimal)
      case (number: Number, at) => statement.setLong(at + 1, number.longValue)
      case (other, _) => throw new IllegalStateException(s"$other is no key of a lookup")
    }
}

private object TableReader {
  private type KeyCache = Cache[UnsafeRow, Seq[InternalRow]]

  /** The caches of this executor, by table, columns and limits. */
  private val caches = CacheBuilder
    .newBuilder()
    .expireAfterAccess(Duration.ofHours(1))
    .build[String, KeyCache]()

  private def cache(table: LookedUpTable, limits: LookupLimits): KeyCache = {
    val identity = Seq[Any](
      table.source.url,
      table,
      table.key.map(_.name),
      table.filters.map(_.sql),
      table.columns.map(_.sql),
      limits)
    caches.get(
      identity.mkString("\u0000"),
      () =>
        CacheBuilder
          .newBuilder()
          .maximumSize(limits.cachedKeys.toLong)
          .expireAfterWrite(Duration.ofSeconds(limits.cacheSeconds))
          .build[UnsafeRow, Seq[InternalRow]]())
  }
}
