// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views.commands

import org.apache.spark.sql.classic.ClassicConversions.castToImpl
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.{Row, SparkSession => AnySession}

import org.apache.spark.sql.changelog.views.{KeptView, ViewCatalog}

/** A statement about views. */
trait ViewCommand extends LeafRunnableCommand {
  final override def run(session: AnySession): Seq[Row] = runIn(castToImpl(session))

  protected def runIn(session: SparkSession): Seq[Row]

  protected def find(session: SparkSession, name: Seq[String]): KeptView =
    new ViewCatalog(session).get(name)
}
