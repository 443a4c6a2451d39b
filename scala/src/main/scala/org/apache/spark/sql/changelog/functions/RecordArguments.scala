// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.functions

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.plans.InputMode
import org.apache.spark.sql.changelog.sources.records.{
  DeadLetters, OnError, OnTruncate, RecordChanges, RecordColumn, RecordFaults, RecordFile,
  RegistryClient, SchemaRegistry
}
import org.apache.spark.sql.changelog.sources.snapshots.InitialSnapshot

/**
 * The arguments shared by all functions over records: the column with the text, and the table's
 * columns.
 *
 * @param keyColumn
 *   the column with the key of the records by default
 */
private[functions] class RecordArguments(
    function: String,
    parameters: Seq[String],
    expressions: Seq[Expression],
    keyColumn: Option[String] = None) {
  import RecordArguments._

  val arguments = new FunctionArguments(
    function,
    (common ++ parameters) ++ Seq("on_schema_change", FunctionArguments.Snapshot),
    expressions)

  arguments.checkNotNested()

  /** Whether records are decoded by the schemas of a registry. */
  val hasRegistry: Boolean =
    parameters.contains(Registry) && arguments.has(Registry)

  /** The records. Those of a schema registry are decoded to JSON. */
  val source: LogicalPlan =
    if (!hasRegistry) arguments.source
    else {
      val registry = schemaRegistry(arguments.text(Registry).get)
      val encoded = Seq("value" -> Some("value"), "message_key" -> keyColumn).flatMap {
        case (argument, default) =>
          arguments.text(argument).orElse(default).map(arguments.column(argument, _))
      }
      if (encoded.head.dataType != BinaryType) {
        val expected =
          s"a BINARY column is expected with $Registry, not ${encoded.head.dataType.sql}"
        throw arguments.invalid("value", encoded.head.name, expected)
      }
      Project(
        arguments.source.output.map { column =>
          if (column.dataType != BinaryType || !encoded.exists(_.exprId == column.exprId)) column
          else Alias(registry.text(column), column.name)()
        },
        arguments.source)
    }

  val timeZone: String = SQLConf.get.sessionLocalTimeZone

  /** The columns of the table. */
  val fields: Seq[StructField] = {
    val text = arguments.text("schema").getOrElse {
      throw arguments.invalid(
        "schema",
        "NULL",
        "the columns of the table are expected, as in schema => 'id BIGINT, name STRING'")
    }
    val parsed =
      try StructType.fromDDL(text)
      catch {
        case NonFatal(error) =>
          val reason = String.valueOf(error.getMessage).linesIterator.nextOption().getOrElse("")
          throw arguments.invalid("schema", s"'$text'", s"the text lists no columns: $reason")
      }
    val fields = CharVarcharUtils.replaceCharVarcharWithStringInSchema(parsed).fields.toSeq
    fields.groupBy(_.name.toLowerCase(java.util.Locale.ROOT)).values.find(_.size > 1).foreach {
      twice =>
        throw arguments.invalid("schema", s"'$text'", s"${twice.head.name} appears twice")
    }
    fields
  }

  /** The columns that identify a row. */
  val key: Seq[StructField] = arguments.names("key").distinct.map { name =>
    val field = fields.find(field => SQLConf.get.resolver(field.name, name)).getOrElse {
      throw arguments.invalid(
        "key",
        name,
        s"the columns are ${fields.map(_.name).mkString(", ")}")
    }
    arguments.checkKey(field.name, field.dataType)
    field
  }

  /** The snapshot read in the first batch, if any. */
  private val snapshot: Option[InitialSnapshot] = arguments.snapshot(key, timeZone)

  /**
   * The input mode: with a key, before images are restored by key, unless the user chooses the
   * before images of the records.
   */
  val input: InputMode = {
    val default = if (key.isEmpty) InputMode.Retract else InputMode.Upsert
    val input = if (parameters.contains("input")) arguments.inputMode(default) else default
    if (input == InputMode.Upsert && key.isEmpty) {
      throw arguments.invalid(
        "key",
        "NULL",
        "the columns that identify a row are expected, as in key => array('id')")
    }
    input
  }

  /** The directory for unreadable records. */
  private val deadLetter: Option[String] = arguments.text("dead_letter").map { path =>
    try {
      val directory = new Path(path)
      val conf = SparkSession.active.sessionState.newHadoopConf()
      directory.getFileSystem(conf).makeQualified(directory).toString
    } catch {
      case NonFatal(error) =>
        throw arguments.invalid(
          "dead_letter",
          s"'$path'",
          s"the path is not a writable directory: ${error.getMessage}")
    }
  }

  private val onError: OnError = {
    val chosen = arguments.choice("on_error", OnError.values)
    chosen.filter(_ != OnError.Drop).foreach { other =>
      if (deadLetter.isDefined) {
        throw arguments.invalid(
          "on_error",
          s"'$other'",
          "with dead_letter, the query drops unreadable records: omit on_error")
      }
    }
    chosen.getOrElse(if (deadLetter.isDefined) OnError.Drop else OnError.Fail)
  }

  private val valueColumn: Attribute = textColumn("value", Some("value")).get

  /** The text of a record. */
  val value: Expression = textOf(valueColumn)

  /** The text of a record's key, if its column is known. */
  lazy val messageKey: Option[Expression] = textColumn("message_key", keyColumn).map(textOf)

  /** The columns that locate a record, for errors. */
  val place: Seq[(String, Expression)] = {
    val columns = source.output
      .filterNot(_.exprId == valueColumn.exprId)
      .map(column => column.name -> column)
    val file =
      if (columns.exists(_._1.equalsIgnoreCase("file"))) None
      else RecordFile.nameIn(source).map("file" -> _)
    columns ++ file
  }

  /** The reaction to a truncation of the table. */
  private lazy val onTruncate: OnTruncate =
    if (!parameters.contains("on_truncate")) OnTruncate.Ignore
    else arguments.choice("on_truncate", OnTruncate.values).getOrElse(OnTruncate.Fail)

  /** Returns the sequence of a key's changes: the user's columns, or the format's default. */
  def sequenceNames(default: => Seq[String]): Seq[String] = {
    val named = if (arguments.has("sequence_by")) Some(arguments.names("sequence_by")) else None
    if (input == InputMode.Retract) {
      named.foreach { names =>
        throw arguments.invalid(
          "sequence_by",
          names.mkString(", "),
          "sequence_by orders the changes of a key, and requires input => 'upsert'")
      }
      Nil
    } else named.getOrElse(default)
  }

  /** The metadata of a record that becomes columns of the table. */
  lazy val metadataNames: Seq[String] = {
    val names = arguments.names("metadata")
    if (names.nonEmpty && input == InputMode.Retract) {
      throw arguments.invalid(
        "metadata",
        names.mkString(", "),
        "a before image lacks the metadata of its change; metadata requires input => 'upsert'")
    }
    names
  }

  /**
   * Returns the description of how to read the records.
   *
   * @param unavailable
   *   the texts that represent a value not sent
   * @param metadata
   *   returns the format's metadata of a record, by name
   */
  def changes(
      sequence: Seq[String],
      encodings: StructField => Option[String],
      unavailable: Seq[String])(metadata: String => Option[Expression]): RecordChanges = {
    def known(argument: String)(name: String): Expression =
      source.output
        .find(column => SQLConf.get.resolver(column.name, name))
        .orElse(metadata(name))
        .getOrElse {
          val expected =
            "a column of the source, or a metadata field of the record, is expected"
          throw arguments.invalid(argument, name, expected)
        }
    if (onTruncate == OnTruncate.Apply && sequence.isEmpty) {
      throw arguments.invalid(
        "on_truncate",
        "'apply'",
        "the sequence tells which rows a truncation removes, and requires a key and input => 'upsert'")
    }
    RecordChanges(
      fields.map(field => new RecordColumn(field, encodings(field), timeZone)),
      key.map(_.name),
      input,
      sequence.map(name => name.replace('.', '_') -> known("sequence_by")(name)),
      if (parameters.contains("metadata")) metadataNames.map { name =>
        known("metadata")(name) match {
          case column: Attribute => column
          case other => Alias(other, name.replace('.', '_'))()
        }
      }
      else Nil,
      unavailable,
      onError,
      onTruncate,
      new RecordFaults(function, onError == OnError.Drop),
      source.output,
      place,
      // A batch query may run repeatedly, and has no batch numbers for the files.
      if (source.isStreaming) deadLetter.map(DeadLetters(_)) else None,
      timeZone,
      snapshot,
      refusesUnknown =
        arguments.choice("on_schema_change", Seq("ignore", "fail")).contains("fail"))
  }

  /** The encodings of columns, as given by the user. */
  lazy val encodings: Map[String, String] =
    arguments.mapping("encodings").getOrElse(Map.empty).map { case (name, encoding) =>
      val field = fields.find(field => SQLConf.get.resolver(field.name, name)).getOrElse {
        val known = fields.map(_.name).mkString(", ")
        throw arguments.invalid("encodings", name, s"the columns are $known")
      }
      val last = encoding.split('.').last
      val known = RecordColumn.Encodings.find(_.equalsIgnoreCase(last)).getOrElse {
        val expected = RecordColumn.Encodings.mkString("one of ", ", ", " is expected")
        throw arguments.invalid("encodings", s"'$encoding' for '$name'", expected)
      }
      field.name -> known
    }

  /** Returns the encoding of a column: the user's, or the default for its type. */
  def encoding(default: PartialFunction[DataType, String]): StructField => Option[String] =
    field => encodings.get(field.name).orElse(default.lift(field.dataType))

  private def textColumn(argument: String, default: Option[String]): Option[Attribute] =
    arguments.text(argument).orElse(default).map { name =>
      val named = arguments.column(argument, name)
      val column = source.output(arguments.source.output.indexWhere(_.exprId == named.exprId))
      column.dataType match {
        case _: StringType | BinaryType => column
        case other =>
          val expected = s"a STRING or BINARY column is expected, not ${other.sql}"
          throw arguments.invalid(argument, name, expected)
      }
    }

  private def schemaRegistry(url: String): SchemaRegistry = {
    RegistryClient.mistakeIn(url).foreach { shown =>
      val key = ChangelogConf.SCHEMA_REGISTRY_PASSWORD.key
      throw arguments.invalid(
        Registry,
        shown,
        s"the address of the registry is expected, as in 'http://registry:8081'; the password is the setting $key")
    }
    new SchemaRegistry(url, SQLConf.get.getConf(ChangelogConf.SCHEMA_REGISTRY_PASSWORD))
  }

  private def textOf(column: Attribute): Expression =
    if (column.dataType == StringType) column else Cast(column, StringType, Some(timeZone))
}

private[functions] object RecordArguments {
  private val common = Seq("schema", "key", "value", "on_error", "dead_letter")

  /** The argument with the address of a schema registry. */
  val Registry = "schema_registry"
}
