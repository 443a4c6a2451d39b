# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Keeps batches of queries and views, and lets others go on from them."""

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
    """Keep a batch of a checkpoint or of a view under a name.

    What is needed to go on from it is copied, and stays until `drop_savepoint`, however far the
    query has come. The query may run meanwhile.

    Parameters
    ----------
    name : str
        Letters, digits and ``_``.
    checkpoint : str, optional
        The checkpoint, or else
    view : str, optional
        the view, whose rows are kept too.
    batch : int, optional
        The last one that is done by default.
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
    """List the savepoints of a checkpoint or of a view, the oldest first.

    Parameters
    ----------
    checkpoint : str, optional
        The checkpoint, or else
    view : str, optional
        the view.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    DataFrame
        ``savepoint``, ``batch``, ``created`` and the path of its ``checkpoint``.

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
    """Delete a savepoint. What was made from it stays.

    Parameters
    ----------
    name : str
        That of the savepoint.
    checkpoint : str, optional
        The checkpoint, or else
    view : str, optional
        the view that it is of.
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
    """Make a checkpoint with which the same query goes on a second time.

    To sinks it is another query. It gives the changes that come after the batch, so its target
    has to hold the rows after that batch.

    Parameters
    ----------
    checkpoint : str
        That of the first query, which may run meanwhile and stays as it is.
    into : str
        A folder that is not there yet.
    batch : int, optional
        From which the query goes on: the last one that is done by default,
    savepoint : str, optional
        or that of a savepoint.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    int
        The batch.

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
    """Make another view of the same query, which goes on from a batch of the first.

    Parameters
    ----------
    view : str
        The first one, which stays as it is.
    into : str
        The name of the other one.
    batch : int, optional
        The last one that is done by default.
    savepoint : str, optional
        The name of a savepoint of the view, instead of a batch.
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
    """Give a view the rows, the state and the query that it had, from where it goes on.

    Readers see the rows it has until they see those. What was changed in its sources since is
    read by its next refresh.

    Parameters
    ----------
    view : str
        The view.
    batch : int, optional
        To which it is put back, or
    savepoint : str, optional
        the name of a savepoint of it.
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
    """Compare a view with another one, or with any table, row by row.

    Parameters
    ----------
    view : str
        The view.
    other : str
        A view or a table with the same columns.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    DataFrame
        Rows of which one has more than the other: which of the two in ``_more_in``, how many
        more in ``_times``. None if they are equal; at most 1000.

    See Also
    --------
    fork_view : has an example.
    """
    return sql(spark, f"COMPARE MATERIALIZED VIEW {view} WITH {other}")


@checked
def swap(view: str, other: str, spark: SparkSession | None = None) -> None:
    """Let two views change places: each has the query, the rows and the state of the other.

    Parameters
    ----------
    view : str
        One of them.
    other : str
        The other one, stored in the same format.
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
