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
 * The partition of each entry in an operator's state. An operator records its placement in the
 * checkpoint. Rescaling reads the record to move state to another number of partitions.
 *
 * @param by
 *   the shuffle expressions of an entry's rows: columns of the entry's key, and constants. Empty
 *   for a single partition.
 * @param form
 *   the relation between entries
 * @param hindrance
 *   the reason why the key does not determine the partition, if so
 */
private[changelog] final case class EntryPlacement(
    by: Seq[Expression],
    form: EntryPlacement.Form = EntryPlacement.Single,
    hindrance: Option[String] = None) {
  import EntryPlacement._

  /** Returns the number of partitions, given the number of shuffle partitions. */
  def partitionsOf(shuffled: Int): Int = if (by.isEmpty) 1 else shuffled

  /**
   * Returns a function from an entry to its partition. An [[OfKinds]] entry must have one kind
   * here.
   */
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

  /** The relation between the entries of a store. */
  sealed trait Form

  /** Every entry is independent. */
  case object Single extends Form

  /** Rows, and an index of the rows by time, derived from them. */
  case object Timed extends Form

  /** Like [[Timed]], with an additional index from each row to its times. */
  case object TimedByRow extends Form

  /**
   * An entry belongs to one or several kinds of rows. The first column of the value has a bit for
   * each kind. Rows of each kind are shuffled separately, by the number of the kind.
   *
   * @param place
   *   the position of the kind's number in the shuffle expressions. In an entry's key, the number
   *   is the first of its kinds.
   * @param numbers
   *   the groups of kinds that share entries, in the order of the bits
   */
  final case class OfKinds(place: Int, numbers: Seq[Seq[Int]]) extends Form {

    /**
     * Returns the number of the kind with the bit `bit`, in the group whose first kind is
     * `first`.
     */
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

  /** A field around a type preserves the collations of texts in JSON. */
  private def field(dataType: DataType) = StructField("key", dataType)

  /**
   * Returns the placement by columns that are in the key of an entry.
   *
   * @param shuffledBy
   *   the shuffle columns
   * @param key
   *   the columns of the entry's key, without its first columns
   * @param first
   *   the number of omitted first columns of the key
   */
  def byColumns(shuffledBy: Seq[Expression], key: Seq[Expression], first: Int): EntryPlacement = {
    val found = shuffledBy.map(column => key.indexWhere(_.semanticEquals(column)))
    if (found.contains(-1))
      unknown("the key of the state lacks a column of the shuffle")
    else {
      EntryPlacement(shuffledBy.zip(found).map { case (column, index) =>
        BoundReference(first + index, column.dataType, nullable = true)
      })
    }
  }

  /** Returns the placement by columns that are adjacent in the key of an entry. */
  def byColumns(shuffledBy: Seq[Expression], first: Int): EntryPlacement =
    byColumns(shuffledBy, shuffledBy, first)

  /** Returns a placement for entries without a known partition. */
  def unknown(why: String): EntryPlacement = EntryPlacement(Nil, hindrance = Some(why))

  /** Parses a placement. Throws any error for an invalid text. */
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
   * Returns the file with the placement of an operator.
   *
   * @param state
   *   the folder with the state of all operators
   */
  def file(state: Path, operator: Long, hadoopConf: Configuration): TextFile =
    new TextFile(new Path(new Path(state, operator.toString), "_metadata/placement"), hadoopConf)
}
