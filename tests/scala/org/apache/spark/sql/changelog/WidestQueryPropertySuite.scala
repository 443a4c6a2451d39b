// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.apache.spark.sql.changelog.testing.grammar.Grammar

/** Queries of the widest grammar. */
class WidestQueryPropertySuite extends QueryProperties(numSeeds = 3, Grammar.Widest)
