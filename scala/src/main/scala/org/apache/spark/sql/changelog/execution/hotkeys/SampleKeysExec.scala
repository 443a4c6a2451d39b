// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.execution.hotkeys

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodegenContext,
  ExprCode,
  GenerateUnsafeProjection
}
import org.apache.spark.sql.catalyst.expressions.{BindReferences, Expression}
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan}

import org.apache.spark.sql.changelog.execution.PassesRows

/**
 * Passes rows on, and looks at the keys of some: below an aggregate, before its rows are combined.
 *
 * @param remedy
 *   what helps where many rows have one key; none where that does no harm
 */
private[execution] case class SampleKeysExec(
    keys: Seq[Expression],
    remedy: Option[String],
    child: SparkPlan)
    extends PassesRows
    with CodegenSupport {

  /** What tasks have seen. */
  lazy val samples: Option[KeySamples] = KeySamples(this, Seq(keys))

  /** With the code of the child alone, or there would be a class for nothing but this node. */
  override def supportCodegen: Boolean = child match {
    case generated: CodegenSupport => generated.supportCodegen
    case _ => false
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] =
    child.asInstanceOf[CodegenSupport].inputRDDs()

  override protected def doProduce(ctx: CodegenContext): String =
    child.asInstanceOf[CodegenSupport].produce(ctx, this)

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String =
    samples.fold(consume(ctx, input)) { samples =>
      val opened = ctx.addReferenceObj("keySamples", samples, classOf[KeySamples].getName)
      val sample = ctx.addMutableState(
        classOf[KeySample].getName,
        "keySample",
        variable => s"$variable = $opened.open(partitionIndex);",
        forceInline = true)
      val bound = BindReferences.bindReferences(keys.map(KeySamples.plain), child.output)
      ctx.currentVars = input
      ctx.INPUT_ROW = null
      val key = GenerateUnsafeProjection.createCode(ctx, bound)
      s"""
         |if ($sample.takesNext()) {
         |  ${key.code}
         |  $sample.add(${key.value});
         |}
         |${consume(ctx, input)}
       """.stripMargin
    }

  override protected def doExecute(): RDD[InternalRow] =
    samples.fold(child.execute()) { samples =>
      child.execute().mapPartitionsWithIndexInternal(samples.noting(0, _, _))
    }

  override protected def withNewChildInternal(newChild: SparkPlan): SampleKeysExec =
    copy(child = newChild)
}
