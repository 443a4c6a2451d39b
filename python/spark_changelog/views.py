# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Statements for materialized views and streaming tables as Python functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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


@checked
def auto_cdc(
    target: str,
    source: str,
    keys: str | Sequence[str],
    sequence_by: str,
    ignore_null_updates: bool = False,
    apply_as_deletes: str | None = None,
    apply_as_truncates: str | None = None,
    column_list: Sequence[str] | None = None,
    except_column_list: Sequence[str] | None = None,
    stored_as_scd_type: Literal[1, 2] = 1,
    track_history_column_list: Sequence[str] | None = None,
    track_history_except_column_list: Sequence[str] | None = None,
    spark: SparkSession | None = None,
) -> None:
    """Create a materialized view of the rows that a stream of change events describes.

    The parameters are those of ``pyspark.pipelines.create_auto_cdc_flow``.

    Parameters
    ----------
    target : str
        The name of the view, as in SQL.
    source : str
        The name of the table with the events, read as a stream.
    keys : str or sequence of str
        The columns that identify a row of the view.
    sequence_by : str
        The SQL expression that orders the events of a key. Events with NULL are ignored.
    ignore_null_updates : bool
        Whether NULL in an event keeps the value before it.
    apply_as_deletes : str, optional
        The SQL condition of events that delete the row of their key.
    apply_as_truncates : str, optional
        The SQL condition of events that delete all rows before them. Not with SCD type 2.
    column_list : sequence of str, optional
        The columns of the view. By default all columns.
    except_column_list : sequence of str, optional
        The columns to leave out, instead of ``column_list``.
    stored_as_scd_type : {1, 2}
        1 for the last row of each key, 2 for all versions with ``__START_AT`` and ``__END_AT``.
    track_history_column_list : sequence of str, optional
        With SCD type 2: the columns whose changes start a new version. By default all columns.
    track_history_except_column_list : sequence of str, optional
        The columns whose changes start no version, instead of ``track_history_column_list``.
    spark : SparkSession, optional
        The active session by default.

    Examples
    --------
    >>> _ = spark.sql("CREATE TABLE moves (id INT, city STRING, op STRING, n INT) USING json")
    >>> _ = spark.sql("INSERT INTO moves VALUES (1, 'Bern', 'I', 1), (1, 'Oslo', 'U', 3)")
    >>> auto_cdc("homes", "moves", "id", "n", except_column_list=["op", "n"],
    ...          apply_as_deletes="op = 'D'", stored_as_scd_type=2, spark=spark)
    >>> _ = spark.sql("INSERT INTO moves VALUES (1, 'Rome', 'U', 2), (1, NULL, 'D', 4)")
    >>> refresh("homes", spark=spark)
    >>> spark.table("homes").orderBy("__START_AT").show()
    +---+----+----------+--------+
    | id|city|__START_AT|__END_AT|
    +---+----+----------+--------+
    |  1|Bern|         1|       2|
    |  1|Rome|         2|       3|
    |  1|Oslo|         3|       4|
    +---+----+----------+--------+
    <BLANKLINE>
    >>> _ = spark.sql("DROP MATERIALIZED VIEW homes")
    >>> _ = spark.sql("DROP TABLE moves")
    """
    clauses = [
        f"CREATE FLOW auto_cdc AS AUTO CDC INTO {target} FROM STREAM({source})",
        f"KEYS {_names([keys] if isinstance(keys, str) else keys)}",
        "IGNORE NULL UPDATES" if ignore_null_updates else "",
        f"APPLY AS DELETE WHEN {apply_as_deletes}" if apply_as_deletes else "",
        f"APPLY AS TRUNCATE WHEN {apply_as_truncates}" if apply_as_truncates else "",
        f"SEQUENCE BY {sequence_by}",
        _chosen("COLUMNS", column_list, except_column_list),
        f"STORED AS SCD TYPE {stored_as_scd_type}",
        _chosen("TRACK HISTORY ON", track_history_column_list, track_history_except_column_list),
    ]
    sql(spark, " ".join(filter(None, clauses)))


def _names(columns: Sequence[str]) -> str:
    return "({})".format(", ".join(f"`{column.replace('`', '``')}`" for column in columns))


def _chosen(clause: str, listed: Sequence[str] | None, excepted: Sequence[str] | None) -> str:
    if listed is not None:
        return f"{clause} {_names(listed)}"
    return "" if excepted is None else f"{clause} * EXCEPT {_names(excepted)}"
