// SPDX-FileCopyrightText: the spark-changelog authors
// SPDX-License-Identifier: Apache-2.0

package org.apache.spark.sql.changelog.testing

/** Pairs of expressions that differ in one constant, function, cast, time zone, collation or default. */
object EditedExpressions {

  /**
   * Returns pairs of expressions with an order, most of which give other values.
   *
   * @param column
   *   the INT column that they read
   */
  def over(column: String): Seq[(String, String)] = {
    def shown(literal: String) = s"CASE WHEN $column IS NOT NULL THEN $literal END"
    val constants = Literals.map { case (one, other) => shown(one) -> shown(other) }
    def inZone(zone: String) =
      s"to_date(from_utc_timestamp(timestamp_seconds($column * 3600L), '$zone'))"
    def collated(name: String) = s"(CASE WHEN $column > 6 THEN 'a' ELSE 'B' END COLLATE $name)"
    def shownType(literal: String) = s"schema_of_variant(${shown(s"CAST($literal AS VARIANT)")})"
    constants ++ Seq(
      shownType("1.5BD") -> shownType("1.5D"),
      s"hex(${shown("CAST(X'80' AS STRING)")})" -> s"hex(${shown("CAST(X'81' AS STRING)")})",
      s"DATE'2024-01-01' + $column" -> s"DATE'2024-01-02' + $column",
      s"CASE WHEN date_from_unix_date($column) > DATE'1970-01-06' THEN 1 END" ->
        s"CASE WHEN date_from_unix_date($column) > DATE'1970-01-09' THEN 1 END",
      inZone("Asia/Tokyo") -> inZone("America/New_York"),
      collated("UTF8_BINARY") -> collated("UTF8_LCASE"),
      s"coalesce($column, 0)" -> s"coalesce($column, 1000)",
      s"CAST($column AS BIGINT)" -> s"CAST($column AS STRING)",
      s"CAST(CAST($column AS DECIMAL(12, 1)) AS STRING)" ->
        s"CAST(CAST($column AS DECIMAL(12, 2)) AS STRING)",
      s"sqrt(abs($column))" -> s"cbrt(abs($column))",
      s"substr(CAST($column AS STRING), 1, 1)" -> s"substr(CAST($column AS STRING), 2, 1)")
  }

  private val Literals: Seq[(String, String)] = Seq(
    "DATE'2024-01-01'" -> "DATE'2025-01-01'",
    "TIMESTAMP'2024-01-01 00:00:00'" -> "TIMESTAMP'2024-01-01 00:00:01'",
    "TIMESTAMP_NTZ'2024-01-01 00:00:00'" -> "TIMESTAMP_NTZ'2024-01-01 00:00:01'",
    "TIME'10:00:00'" -> "TIME'10:00:01'",
    "TIMESTAMP'2024-01-01 00:00:00 UTC'" -> "TIMESTAMP_NTZ'2024-01-01 00:00:00'",
    "INTERVAL '1' DAY" -> "INTERVAL '2' DAY",
    "INTERVAL '1' YEAR" -> "INTERVAL '1' MONTH",
    "1.5BD" -> "1.6BD",
    "1.5BD" -> "1.50BD",
    "1" -> "1L",
    "1.5F" -> "1.5D",
    "1Y" -> "2Y",
    "X'01'" -> "X'02'",
    "'a'" -> "'b'",
    "true" -> "false",
    "array(1, NULL)" -> "array(1, 2)",
    "named_struct('day', DATE'2024-01-01')" -> "named_struct('day', DATE'2024-01-02')")
}
