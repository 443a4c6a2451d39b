# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Materialized views and streaming tables, which SQL statements make, from Python."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from spark_changelog._active import sql
from spark_changelog._arguments import checked


@checked
def refresh(view: str, full: bool | None = None, spark: SparkSession | None = None) -> None:
    """Let a view catch up with its sources, and return when it has.

    Parameters
    ----------
    view : str
        Its name, as in SQL.
    full : bool, optional
        Whether all rows are computed anew. By default the view's refresh policy decides.
    spark : SparkSession, optional
        The active session by default.

    Examples
    --------
    >>> _ = spark.sql("CREATE TABLE rides (city STRING, fare INT) USING json")
    >>> _ = spark.sql("INSERT INTO rides VALUES ('Oslo', 5)")
    >>> _ = spark.sql('''
    ...     CREATE MATERIALIZED VIEW fares AS
    ...     SELECT city, sum(fare) AS total FROM STREAM rides GROUP BY city
    ... ''')
    >>> _ = spark.sql("INSERT INTO rides VALUES ('Oslo', 7)")
    >>> refresh("fares", spark=spark)
    >>> spark.table("fares").show()
    +----+-----+
    |city|total|
    +----+-----+
    |Oslo|   12|
    +----+-----+
    <BLANKLINE>
    >>> verify("fares", spark=spark).count()
    0
    >>> _ = spark.sql("DROP MATERIALIZED VIEW fares")
    >>> _ = spark.sql("DROP TABLE rides")
    """
    how = {None: "", True: " FULL", False: " INCREMENTAL"}[full]
    sql(spark, f"REFRESH MATERIALIZED VIEW {view}{how}")


@checked
def verify(
    view: str, sample: float | None = None, spark: SparkSession | None = None
) -> DataFrame:
    """Compare a view with what its query gives in batch Spark, and return the rows that differ.

    The query is computed over exactly what its sources had delivered when the view's last batch
    was written. How many rows were compared is told by ``DESCRIBE MATERIALIZED VIEW``.

    Parameters
    ----------
    view : str
        Its name, as in SQL.
    sample : float, optional
        Compare only so many percent of its keys, others each time.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    DataFrame
        The view's columns, after ``_difference``: ``missing`` for a row that should be there,
        ``unexpected`` for one that should not. No rows if the view equals its query; at most
        1000.

    See Also
    --------
    refresh : has an example.
    """
    part = "" if sample is None else f" SAMPLE {sample:f} PERCENT"
    return sql(spark, f"VERIFY MATERIALIZED VIEW {view}{part}")
