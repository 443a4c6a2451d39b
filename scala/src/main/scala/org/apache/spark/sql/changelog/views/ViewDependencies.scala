// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.views

import scala.annotation.tailrec
import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTableType, TemporaryViewRelation}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, View}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.CatalogManager.SESSION_CATALOG_NAME
import org.apache.spark.sql.execution.datasources.LogicalRelation

import org.apache.spark.sql.changelog.errors.ChangelogErrors.analysis

/**
 * ViewDependencies: finds the dependencies between views from the texts of their queries. Nothing is analyzed, and a
 * view with missing sources does no harm. The search looks through Spark's own views in between, including the
 * session's temporary views.
 */
class ViewDependencies(session: SparkSession) {
  private val catalog = new ViewCatalog(session)
  private val known = mutable.Map.empty[MaterializedView, Set[TableIdentifier]]

  /** The views of all databases of the session catalog. */
  lazy val views: Seq[MaterializedView] = catalog.listAll()
  private lazy val byName = views.map(view => normal(view.name) -> view).toMap
  private val elsewhere = mutable.Map.empty[TableIdentifier, Option[MaterializedView]]

  private def viewOf(name: TableIdentifier): Option[MaterializedView] =
    if (MaterializedView.isInSessionCatalog(name)) byName.get(name)
    else elsewhere.getOrElseUpdate(name, Try(catalog.find(name)).toOption.flatten)

  /** Returns the upstream views of a view. */
  def readBy(view: MaterializedView): Seq[MaterializedView] =
    namesReadBy(view).toSeq.flatMap(viewOf)

  /** Returns the downstream views of a view, in the session catalog and in the database of the view. */
  def readersOf(view: MaterializedView): Seq[MaterializedView] = {
    val beside =
      if (view.isInSessionCatalog) Nil else catalog.list(view.name.nameParts.dropRight(1), "*")
    (views ++ beside).filter(other => namesReadBy(other).contains(normal(view.name)))
  }

  /** Returns `some` views with their direct and indirect upstream views. */
  def withUpstream(some: Seq[MaterializedView]): Seq[MaterializedView] = closure(some)(readBy)

  /** Returns `some` views with their direct and indirect downstream views. */
  def withReaders(some: Seq[MaterializedView]): Seq[MaterializedView] = closure(some)(readersOf)

  /** Returns the views, each after its upstream views. The views of a cycle come in any order. */
  def ordered(some: Seq[MaterializedView]): Seq[MaterializedView] = {
    val done = mutable.LinkedHashMap.empty[TableIdentifier, MaterializedView]
    def visit(view: MaterializedView, path: Seq[MaterializedView]): Unit = {
      if (!done.contains(view.name) && !path.contains(view)) {
        readBy(view).sortBy(_.sql).foreach(visit(_, path :+ view))
        done(view.name) = view
      }
    }
    some.sortBy(_.sql).foreach(visit(_, Nil))
    val asked = some.map(_.name).toSet
    done.values.filter(view => asked.contains(view.name)).toSeq
  }

  /** Returns the views that read themselves, directly or through other views, with the errors. */
  def cycles(some: Seq[MaterializedView]): Map[TableIdentifier, Throwable] = {
    @tailrec
    def withUpstreamAmong(views: Seq[MaterializedView]): Seq[MaterializedView] = {
      val names = views.map(_.name).toSet
      val left = views.filter(readBy(_).exists(view => names(view.name)))
      if (left.size == views.size) left else withUpstreamAmong(left)
    }
    // Most pipelines have no cycle, and nothing is left.
    withUpstreamAmong(withUpstream(some)).flatMap { view =>
      Try(checkNoCycle(view.name, view.definition)).failed.toOption.map(view.name -> _)
    }.toMap
  }

  /** Rejects a definition by which a view would read itself, directly or through other views. */
  def checkNoCycle(name: TableIdentifier, definition: ViewDefinition): Unit = {
    def visit(view: MaterializedView, path: Seq[TableIdentifier]): Unit =
      if (view.name == name) throw cycle(path :+ name)
      else if (!path.contains(view.name)) readBy(view).foreach(visit(_, path :+ view.name))
    names(definition).flatMap(viewOf(_)).foreach(visit(_, Seq(name)))
  }

  private def cycle(path: Seq[TableIdentifier]) =
    analysis(
      "CHANGELOG_VIEW_CYCLE",
      "view" -> path.head,
      "path" -> path.map(_.quotedString).mkString(" reads "))

  private def closure(some: Seq[MaterializedView])(
      next: MaterializedView => Seq[MaterializedView]): Seq[MaterializedView] = {
    val found = mutable.LinkedHashMap.empty[TableIdentifier, MaterializedView]
    def add(view: MaterializedView): Unit = if (!found.contains(view.name)) {
      found(view.name) = view
      next(view).foreach(add)
    }
    some.foreach(add)
    found.values.toSeq
  }

  private def namesReadBy(view: MaterializedView): Set[TableIdentifier] =
    known.getOrElseUpdate(view, names(view.definition))

  private def names(definition: ViewDefinition): Set[TableIdentifier] =
    names(
      definition.query,
      definition.namespace,
      Set.empty,
      parts => if (mayBeTemporary(parts, definition)) temporaryView(parts) else None)

  /** Excludes temporary views created later under a name from the view's query. */
  private def mayBeTemporary(parts: Seq[String], definition: ViewDefinition): Boolean =
    parts.size > 1 ||
      definition.temporaryViews.forall(_.exists(_.equalsIgnoreCase(parts.head)))

  /**
   * Returns the tables and views read by a query.
   *
   * @param seen
   *   Spark's own views on the path to this query
   * @param temporary
   *   finds the temporary view of a name, which hides tables of this name
   */
  private def names(
      query: String,
      namespace: Seq[String],
      seen: Set[TableIdentifier],
      temporary: Seq[String] => Option[TemporaryViewRelation]): Set[TableIdentifier] = {
    val parsed: Option[LogicalPlan] = Try(
      session.sessionState.sqlParser.parsePlan(query)).toOption
    parsed.toSeq.flatMap(NamesRead(_)).toSet[Seq[String]].flatMap { parts =>
      temporary(parts) match {
        case Some(view) => ofTemporary(view, seen)
        case None => identify(parts, namespace).toSet.flatMap(ofPermanent(_, seen))
      }
    }
  }

  private def temporaryView(parts: Seq[String]): Option[TemporaryViewRelation] =
    session.sessionState.catalog.getRawLocalOrGlobalTempView(parts)

  private def ofTemporary(
      view: TemporaryViewRelation,
      seen: Set[TableIdentifier]): Set[TableIdentifier] = view.plan match {
    case Some(plan) => tablesOf(plan).flatMap(ofPermanent(_, seen))
    case None =>
      val definition = view.tableMeta
      val others = definition.viewReferredTempViewNames.toSet
      definition.viewText.toSet.flatMap((text: String) =>
        names(
          text,
          definition.viewCatalogAndNamespace,
          seen,
          parts => if (others(parts)) temporaryView(parts) else None))
  }

  /** Returns the tables and views read by an analyzed query, such as a data frame's. */
  private def tablesOf(plan: LogicalPlan): Set[TableIdentifier] = {
    val tables = plan.collectWithSubqueries {
      case view: View => Some(view.desc.identifier)
      case table: LogicalRelation => table.catalogTable.map(_.identifier)
    }
    tables.flatten.filter(_.database.nonEmpty).map(normal).toSet
  }

  private def ofPermanent(
      name: TableIdentifier,
      seen: Set[TableIdentifier]): Set[TableIdentifier] =
    if (viewOf(name).nonEmpty || seen.contains(name)) Set(name)
    else {
      ofSpark(name).fold(Set(name)) { case (text, namespace) =>
        names(text, namespace, seen + name, _ => None)
      }
    }

  private def ofSpark(name: TableIdentifier): Option[(String, Seq[String])] =
    Try(session.sessionState.catalog.getTableMetadata(name)).toOption
      .filter(_.tableType == CatalogTableType.VIEW)
      .flatMap(table => table.viewText.map(_ -> table.viewCatalogAndNamespace))

  /** Returns the full name of `parts` in a query, if the name can be a view's. */
  private def identify(parts: Seq[String], namespace: Seq[String]): Option[TableIdentifier] = {
    val current = namespace.headOption.getOrElse(SESSION_CATALOG_NAME)
    val full = parts match {
      case Seq(table) if namespace.size == 2 =>
        Some(TableIdentifier(table, namespace.lift(1), Some(current)))
      case Seq(database, table) => Some(TableIdentifier(table, Some(database), Some(current)))
      case Seq(catalog, database, table) =>
        Some(TableIdentifier(table, Some(database), Some(catalog)))
      case _ => None
    }
    full.map(normal)
  }

  /** Returns the name in lower case, because names in the session catalog are case-insensitive. */
  private def normal(name: TableIdentifier): TableIdentifier =
    if (name.catalog.forall(_.equalsIgnoreCase(SESSION_CATALOG_NAME)))
      TableIdentifier(
        name.table.toLowerCase,
        name.database.map(_.toLowerCase),
        Some(SESSION_CATALOG_NAME))
    else name
}
