# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Savepoints and forks of queries and views."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from spark_changelog._active import sql
from spark_changelog._arguments import checked
from spark_changelog._text import literal


@checked
def create_savepoint(
    name: str,
    checkpoint: str | None = None,
    view: str | None = None,
    batch: int | None = None,
    spark: SparkSession | None = None,
) -> None:
    """Create a savepoint of a query or of a view.

    The savepoint copies the state, offsets and plan after one batch. The copy stays until
    `drop_savepoint`. The query may run during the call.

    Parameters
    ----------
    name : str
        The name of the savepoint: letters, digits and ``_``.
    checkpoint : str, optional
        The checkpoint of the query. Give either a checkpoint or a view.
    view : str, optional
        The name of the view. The savepoint then also has the view's rows.
    batch : int, optional
        The number of the batch, by default the last completed batch.
    spark : SparkSession, optional
        The active session by default.

    See Also
    --------
    fork : has an example.
    """
    sql(spark, f"CREATE SAVEPOINT {name} {_of(checkpoint, view)}{_at(batch, None)}")


@checked
def savepoints(
    checkpoint: str | None = None,
    view: str | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """List the savepoints of a query or of a view, the oldest savepoint first.

    Parameters
    ----------
    checkpoint : str, optional
        The checkpoint of the query. Give either a checkpoint or a view.
    view : str, optional
        The name of the view.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    DataFrame
        One row per savepoint, with columns ``savepoint``, ``batch``, ``created`` and
        ``checkpoint``, the path of the copy.

    See Also
    --------
    fork : has an example.
    """
    return sql(spark, f"SHOW SAVEPOINTS {_of(checkpoint, view)}")


@checked
def drop_savepoint(
    name: str,
    checkpoint: str | None = None,
    view: str | None = None,
    spark: SparkSession | None = None,
) -> None:
    """Delete a savepoint. Queries and views created from the savepoint stay.

    Parameters
    ----------
    name : str
        The name of the savepoint.
    checkpoint : str, optional
        The checkpoint of the query. Give either a checkpoint or a view.
    view : str, optional
        The name of the view.
    spark : SparkSession, optional
        The active session by default.
    """
    sql(spark, f"DROP SAVEPOINT {name} {_of(checkpoint, view)}")


@checked
def fork(
    checkpoint: str,
    into: str,
    batch: int | None = None,
    savepoint: str | None = None,
    spark: SparkSession | None = None,
) -> int:
    """Create a checkpoint for a second run of a query that continues after a batch.

    Sinks see the fork as a new query. The fork emits the changes after the batch, so its sink
    must already have the result as of the batch.

    Parameters
    ----------
    checkpoint : str
        The checkpoint of the first query, which may run and stays unchanged.
    into : str
        The folder to create for the new checkpoint.
    batch : int, optional
        The number of the batch, by default the last completed batch.
    savepoint : str, optional
        The name of a savepoint to start from. Give a batch or a savepoint, not both.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    int
        The number of the batch.

    Examples
    --------
    >>> import tempfile
    >>> from spark_changelog import to_changelog
    >>> folder = tempfile.mkdtemp()
    >>> def arrive(values):
    ...     spark.sql(f"SELECT {values}").write.mode("append").json(f"{folder}/rides")
    >>> def run(checkpoint):
    ...     rides = spark.readStream.schema("city STRING, fare INT").json(f"{folder}/rides")
    ...     query = to_changelog(rides.groupBy("city").sum("fare")).writeStream.foreachBatch(
    ...         lambda batch, _: batch.select("sum(fare)", "_change_type").show()).option(
    ...         "checkpointLocation", f"{folder}/{checkpoint}").start()
    ...     query.processAllAvailable()
    ...     query.stop()
    >>> arrive("'Oslo' AS city, 5 AS fare")
    >>> run("first")
    +---------+------------+
    |sum(fare)|_change_type|
    +---------+------------+
    |        5|      insert|
    +---------+------------+
    <BLANKLINE>
    >>> create_savepoint("before", checkpoint=f"{folder}/first", spark=spark)
    >>> savepoints(checkpoint=f"{folder}/first", spark=spark).select("savepoint", "batch").show()
    +---------+-----+
    |savepoint|batch|
    +---------+-----+
    |   before|    0|
    +---------+-----+
    <BLANKLINE>
    >>> fork(f"{folder}/first", f"{folder}/second", savepoint="before", spark=spark)
    0
    >>> arrive("'Oslo' AS city, 2 AS fare")
    >>> run("second")
    +---------+----------------+
    |sum(fare)|    _change_type|
    +---------+----------------+
    |        5| update_preimage|
    |        7|update_postimage|
    +---------+----------------+
    <BLANKLINE>
    """
    statement = f"FORK CHECKPOINT {literal(checkpoint)}{_at(batch, savepoint)}"
    done = sql(spark, f"{statement} INTO {literal(into)}").collect()
    return int(done[0]["batch"])


@checked
def fork_view(
    view: str,
    into: str,
    batch: int | None = None,
    savepoint: str | None = None,
    spark: SparkSession | None = None,
) -> None:
    """Create a second view of the same query that continues from a batch of the first view.

    Parameters
    ----------
    view : str
        The name of the first view, which stays unchanged.
    into : str
        The name of the new view.
    batch : int, optional
        The number of the batch, by default the last completed batch.
    savepoint : str, optional
        The name of a savepoint of the first view. Give a batch or a savepoint, not both.
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
    >>> fork_view("fares", "others", spark=spark)
    >>> _ = spark.sql("INSERT INTO rides VALUES ('Oslo', 7)")
    >>> _ = spark.sql("REFRESH MATERIALIZED VIEW others")
    >>> compare("fares", "others", spark=spark).orderBy("total").show()
    +--------+------+----+-----+
    |_more_in|_times|city|total|
    +--------+------+----+-----+
    |   fares|     1|Oslo|    5|
    |  others|     1|Oslo|   12|
    +--------+------+----+-----+
    <BLANKLINE>
    >>> swap("fares", "others", spark=spark)
    >>> spark.table("fares").collect()
    [Row(city='Oslo', total=12)]
    >>> restore("fares", batch=1, spark=spark)
    >>> for name in ["fares", "others"]:
    ...     _ = spark.sql(f"DROP MATERIALIZED VIEW {name}")
    >>> _ = spark.sql("DROP TABLE rides")
    """
    at = _at(batch, savepoint)
    sql(spark, f"CREATE MATERIALIZED VIEW {into} FROM {view}{at}")


@checked
def restore(
    view: str,
    batch: int | None = None,
    savepoint: str | None = None,
    spark: SparkSession | None = None,
) -> None:
    """Restore the rows, the state and the query of a view as of a batch.

    Readers see the current rows until the restored rows replace all of them at once. The next
    refresh reads the changes of the sources since the batch.

    Parameters
    ----------
    view : str
        The name of the view.
    batch : int, optional
        The number of the batch. Give either a batch or a savepoint.
    savepoint : str, optional
        The name of a savepoint of the view.
    spark : SparkSession, optional
        The active session by default.

    See Also
    --------
    fork_view : has an example.
    """
    if (batch is None) == (savepoint is None):
        raise ValueError("Name either a batch or a savepoint.")
    to = _at(batch, savepoint).replace(" AT ", " TO ", 1)
    sql(spark, f"RESTORE MATERIALIZED VIEW {view}{to}")


@checked
def compare(view: str, other: str, spark: SparkSession | None = None) -> DataFrame:
    """Compare the rows of a view with another view or any table.

    Parameters
    ----------
    view : str
        The name of the view.
    other : str
        The name of a view or table with the same columns.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    DataFrame
        The rows that occur more often in one relation than in the other. ``_more_in`` is the name
        of that relation, ``_times`` the difference. At most 1000 rows, and no rows if the
        relations are equal.

    See Also
    --------
    fork_view : has an example.
    """
    return sql(spark, f"COMPARE MATERIALIZED VIEW {view} WITH {other}")


@checked
def swap(view: str, other: str, spark: SparkSession | None = None) -> None:
    """Exchange the queries, the rows and the state of two views.

    Parameters
    ----------
    view : str
        The name of the first view.
    other : str
        The name of the second view, stored in the same format.
    spark : SparkSession, optional
        The active session by default.

    See Also
    --------
    fork_view : has an example.
    """
    sql(spark, f"ALTER MATERIALIZED VIEW {view} SWAP WITH {other}")


def _of(checkpoint: str | None, view: str | None) -> str:
    if (checkpoint is None) == (view is None):
        raise ValueError("Name either a checkpoint or a view.")
    return (
        f"OF MATERIALIZED VIEW {view}"
        if checkpoint is None
        else (f"OF CHECKPOINT {literal(checkpoint)}")
    )


def _at(batch: int | None, savepoint: str | None) -> str:
    if batch is not None and savepoint is not None:
        raise ValueError("Name a batch or a savepoint, not both.")
    if batch is not None:
        return f" AT BATCH {batch:d}"
    return "" if savepoint is None else f" AT SAVEPOINT {savepoint}"
