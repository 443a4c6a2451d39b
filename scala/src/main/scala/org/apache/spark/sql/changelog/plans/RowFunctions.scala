// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenFallback, GenerateSafeProjection}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types.StructType

/**
 * Makes an object of a row, and rows of what functions of a typed dataset make of it.
 *
 * @param deserializer
 *   makes the object
 * @param functions
 *   called one after the other, each for every object that the one before gives
 * @param results
 *   what is computed of each object in the end
 * @param serializer
 *   makes columns of the results, which it reads by their number
 */
case class RowFunctions(
    deserializer: Expression,
    functions: Seq[ObjectFunction],
    results: Seq[Any => Any],
    serializer: Seq[NamedExpression])
    extends UnaryExpression
    with Generator
    with CodegenFallback {

  override def child: Expression = deserializer

  override def elementSchema: StructType =
    DataTypeUtils.fromAttributes(serializer.map(_.toAttribute))

  @transient private lazy val toObject = GenerateSafeProjection.generate(Seq(deserializer))
  @transient private lazy val toRow = UnsafeProjection.create(serializer)

  override def eval(input: InternalRow): IterableOnce[InternalRow] = {
    val first = Iterator[Any](toObject(input).get(0, deserializer.dataType))
    functions.foldLeft(first)((objects, function) => objects.flatMap(function(_))).map { last =>
      toRow(new GenericInternalRow(results.map(_(last)).toArray))
    }
  }

  /** `map.filter(k, v)`: the functions' own code has no name. */
  override def sql: String = {
    val columns = deserializer.collect { case column: Attribute => column.name }.distinct
    s"${functions.map(_.name).mkString(".")}${columns.mkString("(", ", ", ")")}"
  }

  override def toString: String = sql

  override protected def withNewChildInternal(newChild: Expression): RowFunctions =
    copy(deserializer = newChild)
}

/** A function that gives any number of objects for one. */
abstract class ObjectFunction(val name: String) extends Serializable {
  def apply(value: Any): Iterator[Any]
}
