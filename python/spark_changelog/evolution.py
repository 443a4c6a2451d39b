# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Changes to a stopped query or its number of partitions, with the state kept."""

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
    """Create a checkpoint for a changed query that continues from a stopped query.

    Operators with the same meaning keep their state. Each new operator builds its state from the
    rows of kept operators, or reads its sources from the beginning. To continue, start the
    changed query with ``into`` as its ``checkpointLocation``; the first batch builds the missing
    state. The old checkpoint stays unchanged.

    Parameters
    ----------
    changes : DataFrame
        The changed query, a result of `to_changelog`.
    checkpoint : str
        The checkpoint of the stopped query.
    into : str, optional
        The folder to create for the new checkpoint. By default nothing is created, and the result
        is a preview.
    target : DataFrame, optional
        The rows of the sink, as written by the stopped query. The first batch then emits only the
        differences from these rows. By default the first batch emits all rows.

    Returns
    -------
    DataFrame
        One row per operator, with columns ``operator``, ``state`` (``kept``, ``rebuilt`` or
        ``dropped``) and ``from``.

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
    """Create a checkpoint with the state of a stopped query in another number of partitions.

    To continue, start the unchanged query with ``into`` as its ``checkpointLocation``. The query
    emits the same changes as with the old checkpoint. The old checkpoint stays unchanged.

    Parameters
    ----------
    checkpoint : str
        The checkpoint of the stopped query.
    into : str
        The folder to create for the new checkpoint.
    partitions : int
        The new number of state partitions.
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    DataFrame
        One row per operator, with columns ``operator``, ``partitions`` (the new number) and
        ``entries`` (the number of entries in its state).

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
