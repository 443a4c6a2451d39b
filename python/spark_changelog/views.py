# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Statements for materialized views and streaming tables as Python functions."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from spark_changelog._active import sql
from spark_changelog._arguments import checked


@checked
def refresh(view: str, full: bool | None = None, spark: SparkSession | None = None) -> None:
    """Refresh a view, and return after the refresh.

    Parameters
    ----------
    view : str
        The name of the view, as in SQL.
    full : bool, optional
        True for a full refresh, False for an incremental refresh. By default the view's refresh
        policy decides.
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
    """Compare a view with its query's result in batch Spark, and return the differences.

    The batch query reads exactly the rows delivered by the sources up to the view's last batch.
    ``DESCRIBE MATERIALIZED VIEW`` shows the number of compared rows.

    Parameters
    ----------
    view : str
        The name of the view, as in SQL.
    sample : float, optional
        The percentage of keys to compare, with different keys in each call. By default every row
        is compared.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    DataFrame
        The column ``_difference`` and the view's columns. ``_difference`` is ``missing`` for a
        row of the batch result without a match in the view, and ``unexpected`` for a row of the
        view without a match in the batch result. At most 1000 rows, and no rows if the view is
        correct.

    See Also
    --------
    refresh : has an example.
    """
    part = "" if sample is None else f" SAMPLE {sample:f} PERCENT"
    return sql(spark, f"VERIFY MATERIALIZED VIEW {view}{part}")
