# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The table functions as functions of data frames.

Each function writes SQL text, for classic sessions and Spark Connect alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import DataFrame

from spark_changelog._active import sql
from spark_changelog._arguments import checked
from spark_changelog._text import call, columns, read, select

Input = Literal["retract", "upsert"]
Mode = Literal["retract", "upsert", "append"]
OnError = Literal["fail", "drop"]
Duplicates = Literal["trust", "warn", "fail"]


@checked
def from_changelog(
    df: DataFrame,
    change_type: str | None = None,
    key: str | Sequence[str] | None = None,
    input: Input | None = None,
    sequence_by: str | Sequence[str] | None = None,
    change_types: Mapping[str, str] | None = None,
    on_error: OnError | None = None,
    duplicates: Duplicates | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read the rows of ``df`` as changes to a table, and return the table.

    Parameters
    ----------
    df : DataFrame
        The changes, streaming or not.
    change_type : str, optional
        The column with the row kind, left out of the table. Accepted words are Spark's
        (``insert``, ``update_preimage``, …), Flink's (``+I``, ``UPDATE_BEFORE``, …), Iceberg's
        and Debezium's (``c``, ``r``, ``u``, ``d``). Without this column every row is an insert.
    key : str or sequence of str, optional
        Columns that are unique in the table.
    input : {"retract", "upsert"}, optional
        ``"retract"``, the default: ``df`` has the before image of every update and delete.
        ``"upsert"``: ``df`` has no before images. They are restored by ``key``, now required.
    sequence_by : str or sequence of str, optional
        Columns that order the changes of one key. By default changes apply in order of arrival.
    change_types : mapping of str to str, optional
        The row kinds of your own words, such as ``{"new": "+I", "gone": "-D"}``.
    on_error : {"fail", "drop"}, optional
        The reaction to a change with an unknown row kind or without a key: ``"fail"``, the
        default, or ``"drop"`` and count the change.
    duplicates : {"trust", "warn", "fail"}, optional
        The reaction to a key with several rows at the end of a batch. ``"trust"``, the default,
        assumes unique keys. ``"warn"`` counts the extra rows and logs a warning, ``"fail"`` stops
        the query before the batch is committed. Both store a count per key.
    snapshot : DataFrame, optional
        The rows of the table before the first change, as a batch data frame. The first batch
        inserts the rows. ``key`` and ``sequence_by`` resolve changes already in the snapshot, as
        with ``input="upsert"``.

    Returns
    -------
    DataFrame
        The table, an ordinary data frame to filter, group and join.

    See Also
    --------
    to_changelog : returns the changes of a table.

    Examples
    --------
    >>> changes = spark.createDataFrame(
    ...     [("+I", 1, "Oslo"), ("+I", 2, "Rome"), ("-U", 1, "Oslo"), ("+U", 1, "Bern")],
    ...     "op STRING, id INT, city STRING",
    ... )
    >>> from_changelog(changes, change_type="op", key="id").orderBy("id").show()
    +---+----+
    | id|city|
    +---+----+
    |  1|Bern|
    |  2|Rome|
    +---+----+
    <BLANKLINE>
    """
    return read(
        "from_changelog",
        df,
        snapshot,
        change_type=change_type,
        key=columns(key),
        input=input,
        sequence_by=columns(sequence_by),
        change_types=change_types,
        on_error=on_error,
        duplicates=duplicates,
    )


@checked
def lookup(df: DataFrame) -> DataFrame:
    """Mark the table ``df`` for a lookup join, with the table's rows at the arrival time.

    Each left row of the join matches the rows of ``df`` as of the end of its batch. Later changes
    of ``df`` leave joined rows unchanged, so the result depends on arrival times.

    Parameters
    ----------
    df : DataFrame
        The table, for the right side of an inner, left, semi or anti join.

    Returns
    -------
    DataFrame
        The rows and columns of ``df``.

    See Also
    --------
    from_changelog : returns a table for ordinary joins, where later changes update the result.

    Examples
    --------
    >>> rates = spark.createDataFrame([("EUR", 2)], "currency STRING, rate INT")
    >>> orders = spark.createDataFrame([(1, "EUR")], "id INT, currency STRING")
    >>> orders.join(lookup(rates), "currency").show()
    +--------+---+----+
    |currency| id|rate|
    +--------+---+----+
    |     EUR|  1|   2|
    +--------+---+----+
    <BLANKLINE>
    """
    return sql(df.sparkSession, select(call("lookup")), df=df)


@checked
def to_changelog(
    df: DataFrame,
    mode: Mode | None = None,
    key: str | Sequence[str] | None = None,
    change_type: str | None = None,
    emit: str | None = None,
    count_rows: str | None = None,
    duplicates: Literal["fail"] | None = None,
    history: Literal["scd2"] | None = None,
    history_by: str | None = None,
    track: str | Sequence[str] | None = None,
    delete_when: str | None = None,
) -> DataFrame:
    """Return the changes of ``df``, with the row kind in a column ``_change_type``.

    Parameters
    ----------
    df : DataFrame
        The query. For a batch data frame every row of the result is an ``insert``.
    mode : {"retract", "upsert", "append"}, optional
        The changelog mode. ``"retract"``, the default, emits the four row kinds. ``"upsert"``
        omits ``update_preimage``, for consumers that write by key. ``"append"`` emits inserts
        only, and fails for a query with updates or deletes.
    key : str or sequence of str, optional
        For ``"upsert"``: the key columns of the consumer. By default the query's upsert key.
    change_type : str, optional
        The name of the column with the row kind, ``_change_type`` by default. A query with a
        column of this name needs a different name.
    emit : str, optional
        When changes are emitted: ``"changes"`` (in each batch, the default),
        ``"every 10 seconds"``, ``"on close"`` (mode ``"append"``), or
        ``"on close, then corrections for 1 hour"``.
    count_rows : str, optional
        The name of a column with the number of equal rows. Each distinct row is then returned
        once, and the whole row is the key: databases and topics can keep a query without a key.
    duplicates : {"fail"}, optional
        Accept a ``key`` that need not be a key of the query. A batch after which two rows have
        an equal key fails.
    history : {"scd2"}, optional
        Emit the changes of the history: the versions of each row of ``df``, with the columns
        ``valid_from``, ``valid_to`` and ``is_current``.
    history_by : str, optional
        The column with the time of a version. The rows of ``df`` are then versions of ``key``.
        By default, a version is valid from the batch that brought it.
    track : str or sequence of str, optional
        The columns whose changes start a new version. By default every row is a version.
    delete_when : str, optional
        The SQL condition of rows that end the validity of the version before them.

    Returns
    -------
    DataFrame
        The columns of ``df`` and ``_change_type``: ``insert``, ``update_preimage``,
        ``update_postimage`` or ``delete``.

    See Also
    --------
    from_changelog : reads changes back into a table.

    Examples
    --------
    >>> cities = spark.createDataFrame([(1, "Bern")], "id INT, city STRING")
    >>> to_changelog(cities).show()
    +---+----+------------+
    | id|city|_change_type|
    +---+----+------------+
    |  1|Bern|      insert|
    +---+----+------------+
    <BLANKLINE>
    """
    function = call(
        "to_changelog",
        mode=mode,
        key=columns(key),
        change_type=change_type,
        emit=emit,
        count_rows=count_rows,
        duplicates=duplicates,
        history=history,
        history_by=history_by,
        track=columns(track),
        delete_when=delete_when,
    )
    # Spark can't explain a streaming query with SQL text at the top.
    return sql(df.sparkSession, select(function), df=df).select("*")
