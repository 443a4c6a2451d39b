// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.identity

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.JsonDSL._
import org.json4s.jackson.JsonMethods.{compact, parse, pretty, render}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.streaming.state.UnsafeRowPair
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import org.apache.spark.sql.changelog.checkpoint.TextFile

/**
 * In which partition each entry of an operator's state is. An operator notes it in its checkpoint, so that its
 * state can be spread over another number of partitions.
 *
 * @param by
 *   what the rows of an entry are shuffled by: columns of its key, and constants. All are in one partition if
 *   there is nothing
 * @param form
 *   how entries belong together
 * @param hindrance
 *   why the key does not tell the partition, if it doesn't
 */
private[changelog] final case class EntryPlacement(
    by: Seq[Expression],
    form: EntryPlacement.Form = EntryPlacement.Single,
    hindrance: Option[String] = None) {
  import EntryPlacement._

  /** How many partitions there are where those that are shuffled have so many. */
  def partitionsOf(shuffled: Int): Int = if (by.isEmpty) 1 else shuffled

  /** Gives the partition that an entry belongs to, of so many. One that is [[OfKinds]] is of one kind here. */
  def partitionOf(numPartitions: Int): UnsafeRowPair => Int = form match {
    case _ if by.isEmpty => _ => 0
    case kinds: OfKinds =>
      val shuffled = UnsafeProjection.create(by)
      val columns = by.zipWithIndex.map { case (column, index) =>
        BoundReference(index, column.dataType, nullable = true)
      }
      val partitionOf = EntryPlacement.partitionOf(columns, numPartitions)
      entry => {
        val row = shuffled(entry.key)
        row.setInt(kinds.place, kinds.numberOf(row.getInt(kinds.place), entry.value.getLong(0)))
        partitionOf(row)
      }
    case _ =>
      val partitionOf = EntryPlacement.partitionOf(by, numPartitions)
      entry => partitionOf(entry.key)
  }

  def toJson: String = {
    val parts = by.map {
      case BoundReference(ordinal, dataType, _) =>
        ("column" -> ordinal) ~ ("type" -> parse(StructType(Seq(field(dataType))).json))
      case constant => JObject("value" -> JInt(constant.eval().asInstanceOf[Int]))
    }
    pretty(
      render(
        ("version" -> Version) ~ ("by" -> JArray(parts.toList)) ~ formToJson(form) ~
          ("hindrance" -> hindrance)))
  }
}

private[changelog] object EntryPlacement {
  private val Version = 1

  /** How the entries of a store belong together. */
  sealed trait Form

  /** Each stands by itself. */
  case object Single extends Form

  /** Rows, and what they are found by as time passes, which is made of them. */
  case object Timed extends Form

  /** The same, where a row is also asked at which times it is there. */
  case object TimedByRow extends Form

  /**
   * Each is of one kind of rows or of several, which the first column of its value tells by a bit each. Rows of
   * each kind are shuffled by themselves, by the number of the kind.
   *
   * @param place
   *   where the number is among what they are shuffled by; of an entry it is that of the first of its kinds
   * @param numbers
   *   those of kinds that have entries together, in the order of the bits
   */
  final case class OfKinds(place: Int, numbers: Seq[Seq[Int]]) extends Form {

    /** The number of the kind whose bit is set, of those of which `first` is the first. */
    def numberOf(first: Int, bit: Long): Int =
      numbers.find(_.head == first).get(java.lang.Long.numberOfTrailingZeros(bit))
  }

  private val plainForms = Seq(Single, Timed, TimedByRow)
  private val OfKindsName = "OfKinds"

  private def formToJson(form: Form): JObject = form match {
    case OfKinds(place, numbers) =>
      ("form" -> OfKindsName) ~ ("place" -> place) ~ ("numbers" -> numbers)
    case plain => JObject("form" -> JString(plain.toString))
  }

  private def formOf(json: JValue): Form = {
    val JString(name) = json \ "form": @unchecked
    if (name == OfKindsName) {
      val JInt(place) = json \ "place": @unchecked
      val JArray(numbers) = json \ "numbers": @unchecked
      OfKinds(
        place.toInt,
        numbers.map { together =>
          for { JArray(all) <- List(together); JInt(number) <- all } yield number.toInt
        })
    } else plainForms.find(_.toString == name).getOrElse(throw new NoSuchElementException(name))
  }

  private def partitionOf(by: Seq[Expression], numPartitions: Int): UnsafeRow => Int = {
    val number = HashPartitioning(by, numPartitions).partitionIdExpression
    val numberOf = UnsafeProjection.create(Seq(number))
    row => numberOf(row).getInt(0)
  }

  /** A type within a field keeps the collations of texts when it is written. */
  private def field(dataType: DataType) = StructField("key", dataType)

  /**
   * By columns that are in the key of an entry.
   *
   * @param shuffledBy
   *   the columns
   * @param key
   *   the columns of the key from one on
   * @param first
   *   how many columns of the key come before
   */
  def byColumns(shuffledBy: Seq[Expression], key: Seq[Expression], first: Int): EntryPlacement = {
    val found = shuffledBy.map(column => key.indexWhere(_.semanticEquals(column)))
    if (found.contains(-1))
      unknown("not all columns that its rows are shuffled by are in the key of its state")
    else {
      EntryPlacement(shuffledBy.zip(found).map { case (column, index) =>
        BoundReference(first + index, column.dataType, nullable = true)
      })
    }
  }

  /** By all of some columns, which stand together in the key of an entry. */
  def byColumns(shuffledBy: Seq[Expression], first: Int): EntryPlacement =
    byColumns(shuffledBy, shuffledBy, first)

  /** Where an entry does not tell its partition. */
  def unknown(why: String): EntryPlacement = EntryPlacement(Nil, hindrance = Some(why))

  /** Throws whatever a text that is none makes it throw. */
  def fromJson(text: String): EntryPlacement = {
    val json = parse(text)
    val JInt(version) = json \ "version": @unchecked
    require(version == Version, s"version $version is not $Version")
    val JArray(parts) = json \ "by": @unchecked
    val by = parts.map { part =>
      part \ "value" match {
        case JInt(value) => Literal(value.toInt)
        case _ =>
          val JInt(ordinal) = part \ "column": @unchecked
          val row = DataType.fromJson(compact(render(part \ "type"))).asInstanceOf[StructType]
          BoundReference(ordinal.toInt, row.head.dataType, nullable = true)
      }
    }
    EntryPlacement(
      by,
      formOf(json),
      (json \ "hindrance").toOption.collect { case JString(why) => why })
  }

  /**
   * The file that tells of an operator.
   *
   * @param state
   *   the folder with the state of all operators
   */
  def file(state: Path, operator: Long, hadoopConf: Configuration): TextFile =
    new TextFile(new Path(new Path(state, operator.toString), "_metadata/placement"), hadoopConf)
}
