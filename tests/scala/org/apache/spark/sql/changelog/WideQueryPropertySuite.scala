// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.apache.spark.sql.changelog.testing.grammar.Grammar

/**
 * Queries of the wide grammar. Subqueries in all their forms are drawn if
 * `CHANGELOG_PROPERTY_SUBQUERIES` is set.
 */
class WideQueryPropertySuite
    extends QueryProperties(
      numSeeds = 5,
      if (sys.env.contains("CHANGELOG_PROPERTY_SUBQUERIES")) Grammar.WideWithSubqueries
      else Grammar.Wide)
