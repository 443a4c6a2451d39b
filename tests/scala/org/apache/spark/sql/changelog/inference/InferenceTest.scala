// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.inference

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.{LogicalRDD, SparkOptimizer}
import org.apache.spark.sql.test.SharedSparkSession
import org.apache.spark.sql.types.{ByteType, MetadataBuilder, StringType, StructType}

import org.apache.spark.sql.changelog.analysis.ResolvePassingTime
import org.apache.spark.sql.changelog.optimizer.{NormalizePhase, PhaseLaws, ResolvePhase}
import org.apache.spark.sql.changelog.plans.{Emission, FromChangelog, InputMode, ToChangelog}
import org.apache.spark.sql.changelog.testing.ChangelogSession
import org.apache.spark.sql.changelog.{ModifyKindSet, OutputMode}

/**
 * Infers the modes of SQL queries over tables that are declared by what their changes can do.
 *
 * Queries are optimized as in a streaming query, up to the point where inference runs there.
 */
trait InferenceTest extends SharedSparkSession {
  override protected def beforeAll(): Unit = {
    ChangelogSession.stopContext()
    super.beforeAll()
  }

  protected val All: ModifyKindSet = ModifyKindSet.All
  protected val InsertOnly: ModifyKindSet = ModifyKindSet.InsertOnly
  protected val InsertUpdate: ModifyKindSet = ModifyKindSet.InsertUpdate
  protected val Retract: OutputMode = OutputMode.Retract
  protected val Upsert: OutputMode = OutputMode.Upsert
  protected val Append: OutputMode = OutputMode.Append

  /** A table kept by changes, usable in SQL under `name`. */
  protected def changelog(
      name: String,
      columns: String,
      kinds: ModifyKindSet,
      key: Seq[String] = Nil,
      input: InputMode = InputMode.Retract,
      watermark: Option[String] = None): Unit = {
    val table = toAttributes(StructType.fromDDL(columns)).map { column =>
      if (watermark.contains(column.name)) withWatermark(column) else column
    }
    val kind = AttributeReference("op", ByteType, nullable = false)()
    val changes = stream(table :+ kind)
    register(
      name,
      FromChangelog(
        Some(kind),
        kinds,
        input,
        table.filter(column => key.contains(column.name)),
        sequence = Nil,
        skipsBadRows = false,
        streaming = true,
        table,
        changes))
  }

  /** A stream of new rows, read as a changelog that only inserts. */
  protected def appends(name: String, columns: String, watermark: Option[String] = None): Unit =
    changelog(name, columns, InsertOnly, watermark = watermark)

  protected def register(name: String, plan: LogicalPlan): Unit =
    Dataset.ofRows(spark, plan).createOrReplaceTempView(name)

  /** A stream that Spark can't look into. */
  protected def stream(columns: Seq[Attribute]): LogicalPlan =
    LogicalRDD(columns, spark.sparkContext.emptyRDD, isStreaming = true)(spark)

  protected def infer(
      sql: String,
      mode: OutputMode = OutputMode.Retract,
      key: Seq[String] = Nil,
      emission: Emission = Emission.Changes): AnnotatedPlan =
    inferPlan(spark.sql(sql).queryExecution.analyzed, mode, key, emission)

  protected def inferPlan(
      plan: LogicalPlan,
      mode: OutputMode = OutputMode.Retract,
      key: Seq[String] = Nil,
      emission: Emission = Emission.Changes): AnnotatedPlan = {
    val root = toChangelog(plan, mode, key).copy(emission = emission)
    val normalized = NormalizePhase(ResolvePhase(optimizedUntilHook(root)))
    val annotated = InferChangelogMode(normalized)
    assert(PhaseLaws.ofNormalized(normalized).isEmpty)
    assert(PhaseLaws.ofAnnotated(annotated).isEmpty)
    annotated
  }

  /** Infers the modes of a plan that the optimizer has not seen. */
  protected def inferAsIs(
      plan: LogicalPlan,
      mode: OutputMode = OutputMode.Retract,
      key: Seq[String] = Nil): AnnotatedPlan = InferChangelogMode(toChangelog(plan, mode, key))

  /** The plan of a table, without what a view puts around it. */
  protected def table(name: String): FromChangelog =
    spark
      .table(name)
      .queryExecution
      .analyzed
      .collectFirst { case source: FromChangelog =>
        source
      }
      .get

  private def toChangelog(plan: LogicalPlan, mode: OutputMode, key: Seq[String]): ToChangelog = {
    val columns = key.map(name => plan.output.find(_.name.equalsIgnoreCase(name)).get)
    val changeType = AttributeReference("_change_type", StringType, nullable = false)()
    val root = ToChangelog(mode, columns, streaming = true, changeType, plan)
    ResolvePassingTime(root).asInstanceOf[ToChangelog]
  }

  /** The plan as a rule injected with `injectPreCBORule` gets it. */
  private def optimizedUntilHook(root: ToChangelog): ToChangelog = {
    var captured = root
    val state = spark.sessionState
    new SparkOptimizer(state.catalogManager, state.catalog, state.experimentalMethods) {
      override def extendedOperatorOptimizationRules: Seq[Rule[LogicalPlan]] =
        super.extendedOperatorOptimizationRules ++ ResolvePhase.optimization.map(_.rule)

      override def preCBORules: Seq[Rule[LogicalPlan]] = Seq(new Rule[LogicalPlan] {
        override def apply(plan: LogicalPlan): LogicalPlan = {
          plan match {
            case optimized: ToChangelog => captured = optimized
            case _ => // a subquery, which Spark optimizes on its own
          }
          plan
        }
      })
    }.execute(root)
    captured
  }

  private def withWatermark(column: AttributeReference): AttributeReference = {
    val marked = new MetadataBuilder()
      .withMetadata(column.metadata)
      .putLong("spark.watermarkDelayMs", 0L)
      .build()
    column.withMetadata(marked).asInstanceOf[AttributeReference]
  }

  /**
   * The tree in a line: `Aggregate[I,UB,UA] < Filter[I] < Source[I]`, and `Join[I](a; b)` for a
   * node with several inputs. Left out are the root, projections, exchanges, watermarks and filters
   * on NOT NULL that Spark puts below joins: their mode is that of their input. What is below the
   * sources is left out too.
   */
  protected def modes(root: AnnotatedPlan): String = line(root.children.head)

  private def line(node: AnnotatedPlan): String = {
    val name = DescribeNode.node(node.plan).stripPrefix("Changelog")
    val below = node.plan match {
      case _: FromChangelog => Nil
      case _ => node.children.map(line)
    }
    if (isUnremarkable(node.plan)) {
      assert(node.mode.toString == node.children.head.mode.toString, name)
      below.head
    } else {
      below match {
        case Nil => s"$name${node.mode}"
        case Seq(one) => s"$name${node.mode} < $one"
        case several => several.mkString(s"$name${node.mode}(", "; ", ")")
      }
    }
  }

  private def isUnremarkable(plan: LogicalPlan): Boolean = plan match {
    case _: Project | _: RepartitionOperation | _: EventTimeWatermark | _: LocalLimit => true
    case Filter(condition, _) => isNotNull(condition)
    case _ => false
  }

  private def isNotNull(condition: Expression): Boolean = condition match {
    case And(a, b) => isNotNull(a) && isNotNull(b)
    case IsNotNull(_) => true
    case _ => false
  }

  /** The names of a node's keys: `(a) or (b)`. */
  protected def keys(node: AnnotatedPlan): String =
    node.upsertKeys.map(names).mkString(" or ")

  protected def names(key: AttributeSet): String =
    key.iterator.map(_.name).mkString("(", ", ", ")")

  /** The first node, from the root, that EXPLAIN calls `name`. */
  protected def find(root: AnnotatedPlan, name: String): AnnotatedPlan = {
    def search(node: AnnotatedPlan): Option[AnnotatedPlan] =
      if (DescribeNode.node(node.plan) == name) Some(node)
      else node.children.flatMap(search).headOption
    search(root).getOrElse(fail(s"no $name in\n${root.plan}"))
  }

  protected def checkRefused(condition: String, parameters: Map[String, String])(
      query: => Any): Unit = {
    val error = intercept[Exception with SparkThrowable](query)
    assert(error.getCondition == condition)
    parameters.foreach { case (name, value) =>
      assert(error.getMessageParameters.get(name) == value, name)
    }
  }

}
