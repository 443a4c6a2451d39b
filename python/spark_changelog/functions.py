# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The table functions, for data frames.

They write SQL text, so a classic session and Spark Connect go the same way.
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
    """Read the rows of ``df`` as changes, and return the table they keep.

    Parameters
    ----------
    df : DataFrame
        The changes, streaming or not.
    change_type : str, optional
        The column that tells the kind of change; it is not part of the table. Spark's words
        (``insert``, ``update_preimage``, …), Flink's (``+I``, ``UPDATE_BEFORE``, …), Iceberg's
        and Debezium's (``c``, ``r``, ``u``, ``d``) are understood. Without it every row is an
        insert.
    key : str or sequence of str, optional
        Columns that are unique in the table.
    input : {"retract", "upsert"}, optional
        ``"retract"``, the default: each change of a row comes with the full row before it.
        ``"upsert"``: it does not, and is looked up by ``key``, which is required then.
    sequence_by : str or sequence of str, optional
        Columns that order the changes of one key. By default they are ordered as they arrive.
    change_types : mapping of str to str, optional
        What your own words for change types mean, such as ``{"new": "+I", "gone": "-D"}``.
    on_error : {"fail", "drop"}, optional
        What to do with a change of unknown type or without a key: ``"fail"``, the default, or
        ``"drop"`` it and count it.
    duplicates : {"trust", "warn", "fail"}, optional
        What to do with a row whose key another row has already: ``"trust"``, the default, that
        there is none, or keep a count for each key, and ``"warn"`` once or ``"fail"``.
    snapshot : DataFrame, optional
        The rows that the table has before the first change, as a data frame that does not
        stream. They come in the first batch, once. What ``df`` tells of them again is settled by
        ``key`` and ``sequence_by``, as with ``input="upsert"``.

    Returns
    -------
    DataFrame
        The table, an ordinary data frame: group it, filter it, join it.

    See Also
    --------
    to_changelog : the way back.

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
    """Mark the table ``df`` so that rows are joined once, with the table as it is then.

    Each row of the other side of the join meets the rows that are there after the batch it
    comes in. What happens to the table later does not change what has been joined, so the
    result depends on when rows come.

    Parameters
    ----------
    df : DataFrame
        The table, for the right side of an inner, left, semi or anti join.

    Returns
    -------
    DataFrame
        The same columns.

    See Also
    --------
    from_changelog : the table itself, whose changes the result of a join follows.

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
    mode: Mode = "retract",
    key: str | Sequence[str] | None = None,
    change_type: str | None = None,
) -> DataFrame:
    """Return the changes of ``df``, each a row of it with a column ``_change_type``.

    Parameters
    ----------
    df : DataFrame
        The query whose result is to be kept. On a data frame that does not stream every row
        of the result is an ``insert``.
    mode : {"retract", "upsert", "append"}
        ``"retract"`` gives all four kinds of change. ``"upsert"`` leaves out
        ``update_preimage``, for consumers that write by key. ``"append"`` gives new rows only,
        and refuses a query that updates or deletes.
    key : str or sequence of str, optional
        For ``"upsert"``: the columns that the consumer writes by. By default the unique key
        that the query has by itself.
    change_type : str, optional
        What the column with the kind of change is called, ``_change_type`` by default. A query
        that has a column of this name needs another one.

    Returns
    -------
    DataFrame
        The columns of ``df`` and ``_change_type``: ``insert``, ``update_preimage``,
        ``update_postimage`` or ``delete``.

    See Also
    --------
    from_changelog : the way back.

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
    function = call("to_changelog", mode=mode, key=columns(key), change_type=change_type)
    # Spark can't explain a stream that is SQL text at its top.
    return sql(df.sparkSession, select(function), df=df).select("*")
