# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""A view over a plain table, by statements of SQL and nothing else.

The table is of Parquet files, which are replaced; over one of Delta's, ``UPDATE`` and ``DELETE``
would do the same, and no copy would be needed (``examples/views.sql``).
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
    """Make the view of the timetable, and refresh it when the flights have ended."""
    published.createOrReplaceTempView("published")
    flown.createOrReplaceTempView("flown")
    for statement in STATEMENTS:
        published.sparkSession.sql(statement)


def refreshes(flights: DataFrame) -> list[Row]:
    """Tell what each refresh has read and written, the newest first."""
    columns = "mode, rows_read, rows_written, rows_taken_back, seconds"
    return (
        flights.sparkSession.sql("SHOW REFRESHES OF airlines")
        .selectExpr(*columns.split(", "))
        .collect()
    )


def differences(flights: DataFrame) -> int:
    """Count the rows in which the view and its query differ."""
    return flights.sparkSession.sql("VERIFY MATERIALIZED VIEW airlines").count()
