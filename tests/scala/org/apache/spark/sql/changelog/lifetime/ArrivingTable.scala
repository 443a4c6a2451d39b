// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.lifetime

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}
import java.sql.Timestamp
import java.time.Instant

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Random

import org.json4s.jackson.JsonMethods
import org.json4s.{DefaultFormats, Formats}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{StructType, TimestampType}
import org.apache.spark.sql.{DataFrame, Row}

/**
 * A table whose random changes arrive as files of JSON, and what it held after each of them.
 *
 * Every change has a number `lsn` that grows. So the files can be read as changes of a table, as an
 * upsert feed in the order of `lsn`, and as events that happen a second or more after each other.
 *
 * @param name
 *   the folder's and the table's name
 */
class ArrivingTable(name: String, feeds: Path, random: Random) {
  import ArrivingTable._

  private val folder = Files.createDirectories(feeds.resolve(name))
  private val rows = mutable.Map.empty[Int, Row]
  private val drawn = mutable.Map.empty[Int, Row]
  private val versions = mutable.ArrayBuffer(Seq.empty[Row])
  private val changed = mutable.Map.empty[Int, Int]
  private val changedIn = mutable.ArrayBuffer(Map.empty[Int, Int])
  private val events = mutable.ArrayBuffer(Seq.empty[Row])
  private var lsn = 0L

  /** The number of files that have arrived. */
  def size: Int = versions.size - 1

  /** Lets a file of random changes arrive. */
  def add(): Unit = {
    val changes = Seq.fill(ChangesPerFile)(draw()).flatten
    arrive(changes.map { case (op, row) => json(op, row) }.mkString("\n"))
  }

  /** Lets a file of changes arrive, one a line. */
  def arrive(file: String): Unit = {
    val unfinished = Files.writeString(feeds.resolve(s"$name-unfinished"), file)
    // the order in which a file source takes files
    val written = Start.plusSeconds(size.toLong)
    Files.setLastModifiedTime(unfinished, FileTime.from(written))
    Files.move(unfinished, folder.resolve(f"$size%05d.json"))
    val changes = file.linesIterator.toSeq.map(parse)
    changes.foreach {
      case (op, row, _) if op.startsWith("-") => rows -= row.getInt(0)
      case (_, row, _) => rows(row.getInt(0)) = row
    }
    changes.foreach { case (_, row, _) => changed(row.getInt(0)) = size }
    versions += rows.values.toSeq
    changedIn += changed.toMap
    events += changes.map { case (_, row, lsn) =>
      Row.fromSeq(row.toSeq.init :+ Timestamp.from(Start.plusSeconds(lsn)))
    }
  }

  /**
   * Lets batch queries read the table, and its events, as they are after a number of files.
   *
   * @param times
   *   when each of the files was read, in ms
   * @param since
   *   only the rows that have come after that time
   */
  def read(session: SparkSession, files: Int, times: Seq[Long], since: Option[Long]): Unit = {
    def view(rows: Seq[Row], name: String, schema: StructType = Schema): Unit =
      session.createDataFrame(rows.asJava, schema).createOrReplaceTempView(name)
    def came(row: Row): Long = times(changedIn(files)(row.getInt(0)))
    view(versions(files).filter(row => since.forall(came(row) > _)), name)
    view(
      versions(files).map(row => Row.fromSeq(row.toSeq :+ new Timestamp(came(row)))),
      s"clocked_$name",
      Schema.add("came", TimestampType))
    view(versions(files), s"newest_$name")
    view(versions(files), s"unique_$name")
    mapped(session, name)
    view(Named, "names", NamesSchema)
    view(events.take(files + 1).flatten.toSeq, s"events_$name")
    view(events.take(files + 1).flatten.toSeq, s"timed_$name")
  }

  /** A change of a row that is there or of one that is not, an update as two. */
  private def draw(): Seq[(String, Row)] = {
    val id = random.nextInt(Ids)
    val changes = drawn.get(id) match {
      case None => Seq("+I" -> newRow(id))
      case Some(old) if random.nextInt(3) == 0 => Seq("-D" -> old)
      case Some(old) => Seq("-U" -> old, "+U" -> newRow(id))
    }
    changes.foreach { case (op, row) => if (op == "-D") drawn -= id else drawn(id) = row }
    changes
  }

  private def newRow(id: Int): Row = Row(
    id,
    if (random.nextInt(12) == 0) null else s"g${random.nextInt(8)}",
    random.nextInt(100),
    (1 + random.nextInt(400)) / 4.0,
    Timestamp.from(Start.plusSeconds(lsn + 1 - random.nextInt(60))))

  private def json(op: String, row: Row): String = {
    // now and then nothing happens for a while
    lsn += (if (random.nextInt(10) == 0) 30 else 1)
    val group = Option(row.getString(1)).fold("null")(text => "\"" + text + "\"")
    s"""{"id":${row.getInt(0)},"g":$group,"v":${row.getInt(2)},"x":${row.getDouble(3)},""" +
      s""""at":"${row.getTimestamp(4).toInstant}","lsn":$lsn,"op":"$op"}"""
  }

  private def parse(line: String): (String, Row, Long) = {
    implicit val formats: Formats = DefaultFormats
    val change = JsonMethods.parse(line)
    val row = Row(
      (change \ "id").extract[Int],
      (change \ "g").extractOpt[String].orNull,
      (change \ "v").extract[Int],
      (change \ "x").extract[Double],
      Timestamp.from(Instant.parse((change \ "at").extract[String])))
    ((change \ "op").extract[String], row, (change \ "lsn").extract[Long])
  }
}

object ArrivingTable {
  val Columns = "id INT, g STRING, v INT, x DOUBLE, at TIMESTAMP"
  val RawColumns: String = s"$Columns, lsn BIGINT, op STRING"

  val Names: Seq[String] = Seq("t", "u")

  private val Schema = StructType.fromDDL(Columns)
  private val NamesSchema = StructType.fromDDL("id INT, name STRING")
  private val Named = (0 until 15).map(id => Row(id, s"name $id"))
  private val ChangesPerFile = 12
  private val Ids = 60
  private val Start = Instant.parse("2024-01-01T00:00:00Z")

  /**
   * Lets streaming queries read each table: as `t`, a table that changes; `newest_t`, the same by an
   * upsert feed; `clocked_t`, that with the time at which each change came; `unique_t`, which looks for keys that
   * come twice; `mapped_t`, what a function makes of its groups; `events_t`, its changes, which only come; and
   * `timed_t`, those with a watermark. Beside them `names`, of which nothing comes later.
   */
  def stream(session: SparkSession, feeds: Path): Unit = {
    stream(
      session,
      name =>
        session.readStream
          .schema(RawColumns)
          .option("maxFilesPerTrigger", 1)
          .json(feeds.resolve(name).toString))
    val folder = Files.createDirectories(feeds.resolve("names"))
    val file = folder.resolve("00000.json")
    if (!Files.exists(file)) {
      val rows = Named.map { row =>
        s"""{"id": ${row.getInt(0)}, "name": "${row.getString(1)}"}"""
      }
      Files.writeString(file, rows.mkString("\n"))
    }
    session.readStream
      .schema(NamesSchema)
      .json(folder.toString)
      .createOrReplaceTempView("raw_names")
    session
      .sql("SELECT * FROM from_changelog(TABLE(raw_names))")
      .createOrReplaceTempView("names")
  }

  /** The same without `names`, where `changes` gives what the files of a table hold. */
  def stream(session: SparkSession, changes: String => DataFrame): Unit = Names.foreach { name =>
    changes(name).createOrReplaceTempView(s"raw_$name")
    def view(name: String, sql: String): Unit =
      session.sql(sql).createOrReplaceTempView(name)
    view(
      name,
      s"SELECT * FROM from_changelog(TABLE(SELECT * EXCEPT (lsn) FROM raw_$name), 'op', 'id')")
    mapped(session, name)
    view(
      s"unique_$name",
      s"""SELECT * EXCEPT (lsn) FROM from_changelog(TABLE(raw_$name), 'op',
         |key => array('id'), duplicates => 'fail')""".stripMargin)
    view(
      s"newest_$name",
      s"""SELECT * EXCEPT (lsn) FROM from_changelog(TABLE(raw_$name), 'op',
         |key => array('id'), input => 'upsert', sequence_by => array('lsn'))""".stripMargin)
    session
      .sql(s"SELECT *, current_timestamp() AS came FROM raw_$name")
      .createOrReplaceTempView(s"raw_clocked_$name")
    view(
      s"clocked_$name",
      s"""SELECT * EXCEPT (lsn) FROM from_changelog(TABLE(raw_clocked_$name), 'op',
         |key => array('id'), input => 'upsert', sequence_by => array('lsn'))""".stripMargin)
    val events =
      s"SELECT id, g, v, x, timestamp_seconds(${Start.getEpochSecond} + lsn) AS at FROM raw_$name"
    view(s"events_$name", s"SELECT * FROM from_changelog(TABLE($events))")
    session
      .sql(events)
      .withWatermark("at", "500 milliseconds")
      .createOrReplaceTempView(s"raw_timed_$name")
    view(s"timed_$name", s"SELECT * FROM from_changelog(TABLE(raw_timed_$name))")
  }

  /** A function over the rows of groups, of which SQL has none. */
  private def mapped(session: SparkSession, table: String): Unit = {
    import session.implicits._
    session
      .table(table)
      .select("g", "v")
      .as[(Option[String], Int)]
      .groupByKey(_._1)
      .mapGroups(new Span)
      .toDF("g", "n", "span")
      .createOrReplaceTempView(s"mapped_$table")
  }

  /** How many values a group has, and how far they are apart. A class, as a checkpoint knows it by its name. */
  private class Span
      extends ((Option[String], Iterator[(Option[String], Int)]) => (Option[String], Int, Int))
      with Serializable {
    override def apply(
        group: Option[String],
        rows: Iterator[(Option[String], Int)]): (Option[String], Int, Int) = {
      val values = rows.map(_._2).toSeq
      (group, values.size, values.max - values.min)
    }
  }
}
