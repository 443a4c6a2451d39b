# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""A view over a plain table, with SQL statements only.

The table has Parquet files, replaced by ``INSERT OVERWRITE``, so the view stores a copy to find
the changes. A Delta table has ``UPDATE`` and ``DELETE`` and needs no copy
(``examples/views.sql``).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Row

TIMETABLE = "CREATE TABLE board USING parquet AS SELECT carrier, flight, scheduled, "
STATEMENTS = (
    TIMETABLE + "CAST(NULL AS INT) AS arr_delay FROM published",
    "CREATE MATERIALIZED VIEW airlines USING parquet "
    "TBLPROPERTIES ('changelog.follow' = 'copies') AS "
    "SELECT carrier, count(*) AS flights, count(arr_delay) AS landed, avg(arr_delay) AS average "
    "FROM board GROUP BY carrier",
    "INSERT OVERWRITE board SELECT carrier, flight, scheduled, arr_delay FROM flown",
    "REFRESH MATERIALIZED VIEW airlines INCREMENTAL",
)


def keep(published: DataFrame, flown: DataFrame) -> None:
    """Create the view over the timetable, and refresh the view after the final flights."""
    published.createOrReplaceTempView("published")
    flown.createOrReplaceTempView("flown")
    for statement in STATEMENTS:
        published.sparkSession.sql(statement)


def refreshes(flights: DataFrame) -> list[Row]:
    """Return the rows read and written by each refresh, the newest refresh first."""
    columns = "mode, rows_read, rows_written, rows_retracted, seconds"
    return (
        flights.sparkSession.sql("SHOW REFRESHES OF airlines")
        .selectExpr(*columns.split(", "))
        .collect()
    )


def differences(flights: DataFrame) -> int:
    """Count the differences between the view and its query's result."""
    return flights.sparkSession.sql("VERIFY MATERIALIZED VIEW airlines").count()
