# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Lets a query go on otherwise with the state it has."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_changelog._active import sql
from spark_changelog._arguments import checked
from spark_changelog._text import literal


@checked
def evolve(
    changes: DataFrame,
    checkpoint: str,
    into: str | None = None,
    target: DataFrame | None = None,
) -> DataFrame:
    """Make the checkpoint with which a changed query goes on where another was stopped.

    Operators that mean the same keep their state; the others begin with the rows of those, or
    read their sources from the beginning. All that happens in the first batch of the changed
    query, when it is started with ``into`` as its ``checkpointLocation``. The old checkpoint
    stays as it is.

    Parameters
    ----------
    changes : DataFrame
        The changed query, as `to_changelog` gives it.
    checkpoint : str
        That of the query before, which has been stopped.
    into : str, optional
        A folder that is not there yet, where the new checkpoint is made. Without it nothing is
        done, and only told what would become of the operators.
    target : DataFrame, optional
        The rows that the query before has brought into its target. Then the first batch brings
        what differs from them, and otherwise all rows.

    Returns
    -------
    DataFrame
        What becomes of each operator, in columns ``operator``, ``state`` (``kept``, ``rebuilt``
        or ``dropped``) and ``from``.

    Examples
    --------
    >>> import tempfile
    >>> from spark_changelog import to_changelog
    >>> folder = tempfile.mkdtemp()
    >>> spark.sql("SELECT 'Oslo' AS city, 5 AS fare").write.json(f"{folder}/rides")
    >>> rides = spark.readStream.schema("city STRING, fare INT").json(f"{folder}/rides")
    >>> totals = rides.groupBy("city").sum("fare")
    >>> query = to_changelog(totals).writeStream.format("noop").option(
    ...     "checkpointLocation", f"{folder}/first").start()
    >>> query.processAllAvailable()
    >>> query.stop()
    >>> large = totals.where("`sum(fare)` > 3")
    >>> evolve(to_changelog(large), f"{folder}/first").select("state").collect()
    [Row(state='kept')]
    """
    names: dict[str, Any] = {"df": changes}
    statement = f"EVOLVE CHECKPOINT {literal(checkpoint)}"
    if into is None:
        statement = f"EXPLAIN {statement}"
    else:
        statement = f"{statement} INTO {literal(into)}"
        if target is not None:
            names["target"] = target
            statement = f"{statement} TARGET {{target}}"
    return sql(changes.sparkSession, f"{statement} AS SELECT * FROM {{df}}", **names)


@checked
def rescale(
    checkpoint: str,
    into: str,
    partitions: int,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Make the checkpoint with which a query goes on in another number of partitions.

    The query has been stopped. It goes on when it is started, as it is, with ``into`` as its
    ``checkpointLocation``, and emits what it would have emitted with the old checkpoint, which
    stays as it is.

    Parameters
    ----------
    checkpoint : str
        That of the query.
    into : str
        A folder that is not there yet, where the new checkpoint is made.
    partitions : int
        In how many partitions the query is to keep its state.
    spark : SparkSession, optional
        By default the active one.

    Returns
    -------
    DataFrame
        Over how many partitions the state of each operator is spread, and how many entries it
        has, in columns ``operator``, ``partitions`` and ``entries``.

    Examples
    --------
    >>> import tempfile
    >>> from spark_changelog import to_changelog
    >>> folder = tempfile.mkdtemp()
    >>> spark.sql("SELECT 'Oslo' AS city, 5 AS fare").write.json(f"{folder}/rides")
    >>> rides = spark.readStream.schema("city STRING, fare INT").json(f"{folder}/rides")
    >>> query = to_changelog(rides.groupBy("city").sum("fare")).writeStream.format("noop").option(
    ...     "checkpointLocation", f"{folder}/first").start()
    >>> query.processAllAvailable()
    >>> query.stop()
    >>> spread = rescale(f"{folder}/first", f"{folder}/second", partitions=7)
    >>> spread.select("partitions", "entries").collect()
    [Row(partitions=7, entries=1)]
    """
    return sql(
        spark,
        f"RESCALE CHECKPOINT {literal(checkpoint)} INTO {literal(into)} PARTITIONS {partitions}",
    )
