// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package io.sparkchangelog

import org.apache.spark.sql.SparkSessionExtensions

import org.apache.spark.sql.changelog.analysis._
import org.apache.spark.sql.changelog.config.ChangelogConf
import org.apache.spark.sql.changelog.execution.{ChangelogStrategy, PrepareStages, RunningPlans}
import org.apache.spark.sql.changelog.explain.{ChangelogStatusFunction, StatusStrategy}
import org.apache.spark.sql.changelog.functions._
import org.apache.spark.sql.changelog.identity.CheckChangelogSupport
import org.apache.spark.sql.changelog.optimizer._
import org.apache.spark.sql.changelog.parser.{ChangelogParser, MatchRecognizeFunction}
import org.apache.spark.sql.changelog.views._
import org.apache.spark.sql.changelog.views.changes.{ChangesFunction, ResolveViewChanges}
import org.apache.spark.sql.changelog.web.ChangelogTab

/**
 * ChangelogExtensions: adds incremental materialized views and changelog queries to a session.
 *
 * Set `spark.sql.extensions=io.sparkchangelog.ChangelogExtensions` before the session starts. The session then has the
 * table functions `from_changelog` and `to_changelog`, and the statements of views, savepoints and `EXPLAIN CHANGELOG`.
 *
 * The parser and the rules look at every statement. A query without the functions and views keeps its plan.
 */
class ChangelogExtensions extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    ChangelogConf.register()
    RunningPlans.onQueryStart(ChangelogTab.show)
    // parsing: statements missing in Spark's grammar
    extensions.injectParser((_, parser) => new ChangelogParser(parser))
    // analysis
    extensions.injectTableFunction(FromChangelogFunction.description)
    extensions.injectTableFunction(FromDebeziumFunction.description)
    extensions.injectTableFunction(FromCanalFunction.description)
    extensions.injectTableFunction(FromMaxwellFunction.description)
    extensions.injectTableFunction(FromGoldenGateFunction.description)
    extensions.injectTableFunction(FromUpsertKafkaFunction.description)
    extensions.injectTableFunction(ToChangelogFunction.description)
    extensions.injectTableFunction(HistoryFunction.description)
    extensions.injectTableFunction(LookupFunction.description)
    extensions.injectTableFunction(VersionsOfFunction.description)
    extensions.injectTableFunction(MatchRecognizeFunction.description)
    extensions.injectTableFunction(ChangesFunction.description)
    extensions.injectTableFunction(ChangelogStatusFunction.description)
    ResolvePhase.hints.foreach(pass => extensions.injectHintResolutionRule(_ => pass.rule))
    extensions.injectHintResolutionRule(_ => ResolveViewStatements) // queries stay text
    extensions.injectHintResolutionRule(
      new RefuseViewWrites(_)
    ) // before formats replace statements
    // Hive sessions skip the hint rules above; columns are resolved here in all sessions
    ResolvePhase.hints.foreach(pass => extensions.injectResolutionRule(_ => pass.rule))
    extensions.injectResolutionRule(new RefuseViewWrites(_))
    extensions.injectResolutionRule(new DropViewsWhole(_))
    extensions.injectResolutionRule(new ResolveViewChanges(_))
    extensions.injectResolutionRule(_ => CheckWatermarks) // before Spark drops watermarks
    ResolvePhase.analysis.foreach(pass => extensions.injectPostHocResolutionRule(_ => pass.rule))
    extensions.injectCheckRule(_ => CheckTableAsOf)
    extensions.injectCheckRule(_ => CheckPivot)
    extensions.injectCheckRule(_ => CheckNearestBy)
    extensions.injectCheckRule(_ => CheckRowOrder) // before functions are replaced
    extensions.injectCheckRule(new CheckChangelogSupport(_))
    // before optimization
    ResolvePhase.lowering.foreach(pass => extensions.injectPlanNormalizationRule(_ => pass.rule))
    // optimization: with Spark's operator optimization
    ResolvePhase.optimization.foreach(pass => extensions.injectOptimizerRule(_ => pass.rule))
    // after operator optimization, before distinct aggregates are expanded
    extensions.injectPreCBORule(new RewriteChangelogQuery(_))
    // planning: before Spark's own strategies
    extensions.injectPlannerStrategy(new ChangelogStrategy(_))
    extensions.injectPlannerStrategy(_ => StatusStrategy)
    // preparation: after exchanges are in place, before code is generated
    extensions.injectColumnar(_ => PrepareStages)
  }
}
