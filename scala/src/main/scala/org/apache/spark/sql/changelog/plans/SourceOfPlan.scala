// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.plans

/**
 * What gives a stream the rows of a plan. Two are the same if their plans are: others are told apart by which
 * was made, as a stream gives each of its makers rows of their own.
 */
trait SourceOfPlan
