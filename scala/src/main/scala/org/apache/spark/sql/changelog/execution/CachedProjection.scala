// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution

import java.lang.reflect.Constructor
import java.util.{Collections, LinkedHashMap, Map => JavaMap}

import scala.collection.immutable.ArraySeq

import org.apache.spark.sql.catalyst.expressions.BindReferences.bindReferences
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  BoundReference,
  CodegenObjectFactoryMode,
  Expression,
  Literal,
  UnsafeProjection
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * Makes projections into unsafe rows, as [[UnsafeProjection]] does.
 *
 * Spark writes the text of their code anew for each, to look up by it what it has compiled. Each task
 * of an operator needs some ten of them, which in a small batch is half of its work. Most only pick
 * columns: what was compiled for those is looked up by the columns.
 */
object CachedProjection {
  private val MostKept = 5000

  private val kept: JavaMap[Seq[Expression], Constructor[_]] = Collections.synchronizedMap(
    new LinkedHashMap[Seq[Expression], Constructor[_]](16, 0.75f, true) {
      override def removeEldestEntry(
          eldest: JavaMap.Entry[Seq[Expression], Constructor[_]]): Boolean =
        size > MostKept
    })

  /** A projection of rows with the columns of a schema. It is not thread-safe, as all of them. */
  def create(schema: StructType): UnsafeProjection = create(schema.fields.map(_.dataType))

  /** A projection of rows with columns of some types. */
  def create(types: Array[DataType]): UnsafeProjection =
    create(ArraySeq.unsafeWrapArray(types).zipWithIndex.map { case (dataType, ordinal) =>
      BoundReference(ordinal, dataType, nullable = true)
    })

  /** A projection by expressions over the columns `input`. */
  def create(expressions: Seq[Expression], input: Seq[Attribute]): UnsafeProjection =
    create(bindReferences(expressions, input))

  /** A projection by bound expressions. */
  def create(expressions: Seq[Expression]): UnsafeProjection =
    if (!expressions.forall(picksColumn) || !generatesCode) UnsafeProjection.create(expressions)
    else {
      val key = expressions.map {
        case Alias(child, _) => child
        case other => other
      }
      Option(kept.get(key)).map(make).getOrElse {
        val projection = UnsafeProjection.create(key)
        // where code can't be compiled there is another one
        constructor(projection).foreach(kept.put(key, _))
        projection
      }
    }

  /** Code for these refers to nothing outside of it, and equal ones have equal code. */
  private def picksColumn(expression: Expression): Boolean = expression match {
    case _: BoundReference => true
    case Alias(child, _) => picksColumn(child)
    // two zeros are equal
    case Literal(value, _) =>
      value == null || value.isInstanceOf[Byte] || value.isInstanceOf[Int] ||
      value.isInstanceOf[Long] || value.isInstanceOf[Boolean]
    case _ => false
  }

  private def generatesCode: Boolean =
    SQLConf.get.getConf(SQLConf.CODEGEN_FACTORY_MODE) != CodegenObjectFactoryMode.NO_CODEGEN

  private def constructor(projection: UnsafeProjection): Option[Constructor[_]] =
    projection.getClass.getConstructors.find(_.getParameterTypes.sameElements(References))

  private def make(constructor: Constructor[_]): UnsafeProjection =
    constructor.newInstance(Array.empty[AnyRef]).asInstanceOf[UnsafeProjection]

  private val References = Array[Class[_]](classOf[Array[AnyRef]])
}
