// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenFallback, GenerateSafeProjection}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types.StructType

/**
 * Deserializes a row to an object, calls functions of a typed dataset, and serializes the results to rows.
 *
 * @param deserializer
 *   creates the object
 * @param functions
 *   the functions in order; each is called for every object returned by its predecessor
 * @param results
 *   the functions computed for each final object
 * @param serializer
 *   the output columns, computed from results by position
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

  /** `map.filter(k, v)`: user functions have no names of their own. */
  override def sql: String = {
    val columns = deserializer.collect { case column: Attribute => column.name }.distinct
    s"${functions.map(_.name).mkString(".")}${columns.mkString("(", ", ", ")")}"
  }

  override def toString: String = sql

  override protected def withNewChildInternal(newChild: Expression): RowFunctions =
    copy(deserializer = newChild)
}

/** A function from one object to any number of objects. */
abstract class ObjectFunction(val name: String) extends Serializable {
  def apply(value: Any): Iterator[Any]
}
