// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.sources

/**
 * Change records in text form, such as Debezium's and Canal's, read as rows with a kind.
 *
 * {{{
 *   DebeziumFormat, FlatFormat,    a record's text, parsed by from_json, as one ParsedRecord
 *   UpsertFormat
 *   RecordColumn, RecordValues     the text of one value as a value of its column's type
 *   RecordChanges                  a ParsedRecord as changes: below FromChangelog
 *   RecordFaults                   the handling of unreadable records
 * }}}
 */
package object records
