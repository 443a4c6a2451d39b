// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog

import org.apache.spark.sql.changelog.testing.grammar.Grammar

/** Queries as they have always been drawn, those that failed once among them. */
class QueryPropertySuite extends QueryProperties(numSeeds = 4, Grammar.Narrow)
