// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Literal}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StringType

import org.apache.spark.sql.changelog.views.ViewStatus

/**
 * `DESCRIBE [EXTENDED] MATERIALIZED VIEW v`: its columns, how it is kept, how far it is and how it
 * was verified; with `EXTENDED` also where, and by which plan.
 */
case class DescribeKeptView(name: Seq[String], extended: Boolean) extends ViewCommand {

  override val output: Seq[Attribute] =
    Seq("name", "value").map(AttributeReference(_, StringType)())

  override protected def runIn(session: SparkSession): Seq[Row] = {
    val view = find(session, name)
    val columns = view.schema.fields.toSeq.map { field =>
      val comment = field.getComment().fold("")(text => s" COMMENT ${Literal(text).sql}")
      Row(field.name, field.dataType.sql + comment)
    }
    val status = new ViewStatus(session, view)
    val facts = status.facts ++ (if (extended) status.details else Nil)
    (columns :+ Row("", "")) ++ facts.map { case (fact, value) => Row(fact, value) }
  }
}
