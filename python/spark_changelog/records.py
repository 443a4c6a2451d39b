# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Tables from records that describe changes as text, such as Debezium's and Canal's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from spark_changelog._arguments import checked
from spark_changelog._text import columns, ddl, read
from spark_changelog.functions import Input

DecimalHandling = Literal["precise", "string", "double"]
TimePrecision = Literal[
    "adaptive",
    "adaptive_time_microseconds",
    "connect",
    "isostring",
    "microseconds",
    "nanoseconds",
]
BinaryHandling = Literal["bytes", "base64", "base64-url-safe", "hex"]
OnRecordError = Literal["fail", "drop", "return"]
OnTruncate = Literal["fail", "ignore"]


@checked
def from_debezium(
    df: DataFrame,
    schema: str | StructType,
    key: str | Sequence[str] | None = None,
    *,
    value: str = "value",
    message_key: str | None = None,
    input: Input | None = None,
    sequence_by: str | Sequence[str] | None = None,
    table: str | None = None,
    metadata: str | Sequence[str] | None = None,
    decimal_handling_mode: DecimalHandling | None = None,
    time_precision_mode: TimePrecision | None = None,
    binary_handling_mode: BinaryHandling | None = None,
    encodings: Mapping[str, str] | None = None,
    unavailable_value: str | None = None,
    on_truncate: OnTruncate | None = None,
    on_error: OnRecordError | None = None,
    dead_letter: str | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read Debezium's change events, and return the table they keep.

    Parameters
    ----------
    df : DataFrame
        The events, streaming or not: a row each, from Kafka, files or anything else.
    schema : str or StructType
        The columns of the table, named as in the events.
    key : str or sequence of str, optional
        Columns that identify a row. With a key old rows are restored by it, and events that come
        twice or late are settled. Without one every event must hold its old row.
    value : str
        The column with the text of an event, a string or bytes.
    message_key : str, optional
        The column with the key of an event, for deletes that come without their old row.
    input : {"retract", "upsert"}, optional
        Whether old rows are read from the events or restored by ``key``. By default the latter
        where a key is given.
    sequence_by : str or sequence of str, optional
        What orders the changes of a row: columns of ``df``, or fields such as ``source.lsn``. By
        default the position in the log of PostgreSQL, MySQL or MariaDB, then ``source.ts_ms``.
    table : str, optional
        The table whose events are read, as ``orders`` or ``public.orders``; by default all.
    metadata : str or sequence of str, optional
        Columns of ``df``, or fields such as ``source.ts_ms``, ``transaction.id`` or ``op``, which
        become columns of the table. They tell of the last change of each row.
    decimal_handling_mode, time_precision_mode, binary_handling_mode : str, optional
        The connector's settings of the same names, where events come without their schema.
    encodings : mapping of str to str, optional
        The encodings of single columns, such as ``{"created": "MicroTimestamp"}``.
    unavailable_value : str, optional
        The connector's ``unavailable.value.placeholder``.
    on_truncate : {"fail", "ignore"}, optional
        What to do when the table is truncated, which no row tells.
    on_error : {"fail", "drop", "return"}, optional
        What to do with an event that can't be read: ``"fail"``, the default, or ``"drop"`` it and
        count it. With ``"return"`` such rows of ``df`` are returned, and not the table, with the
        reason in a column ``_error``: write them where they are looked after.
    dead_letter : str, optional
        A directory for the events of a stream that can't be read, as files of JSON: each with
        the reason and its other columns. They are dropped and counted, and ``on_error`` is left
        out.
    snapshot : DataFrame, optional
        The rows that the table has before the first event, as a data frame that does not stream.
        They come in the first batch, once; what ``df`` tells of them again is settled by ``key``.
        Columns such as ``source_lsn`` need not be there: rows without them are older than all.

    Returns
    -------
    DataFrame
        The table, an ordinary data frame.

    Examples
    --------
    >>> events = spark.createDataFrame(
    ...     [
    ...         ('{"op": "c", "after": {"id": 1, "city": "Oslo"}, "source": {"lsn": 10}}',),
    ...         ('{"op": "c", "after": {"id": 2, "city": "Rome"}, "source": {"lsn": 11}}',),
    ...         ('{"op": "u", "after": {"id": 1, "city": "Bern"}, "source": {"lsn": 12}}',),
    ...         ('{"op": "d", "before": {"id": 2}, "source": {"lsn": 13}}',),
    ...     ],
    ...     "value STRING",
    ... )
    >>> from_debezium(events, "id INT, city STRING", key="id").show()
    +---+----+
    | id|city|
    +---+----+
    |  1|Bern|
    +---+----+
    <BLANKLINE>
    """
    return read(
        "from_debezium",
        df,
        snapshot,
        schema=ddl(schema),
        key=columns(key),
        value=value,
        message_key=message_key,
        input=input,
        sequence_by=columns(sequence_by),
        table=table,
        metadata=columns(metadata),
        decimal_handling_mode=decimal_handling_mode,
        time_precision_mode=time_precision_mode,
        binary_handling_mode=binary_handling_mode,
        encodings=encodings,
        unavailable_value=unavailable_value,
        on_truncate=on_truncate,
        on_error=on_error,
        dead_letter=dead_letter,
    )


@checked
def from_canal(
    df: DataFrame,
    schema: str | StructType,
    key: str | Sequence[str] | None = None,
    *,
    value: str = "value",
    input: Input | None = None,
    sequence_by: str | Sequence[str] | None = None,
    table: str | None = None,
    metadata: str | Sequence[str] | None = None,
    encodings: Mapping[str, str] | None = None,
    on_truncate: OnTruncate | None = None,
    on_error: OnRecordError | None = None,
    dead_letter: str | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read Canal's flat messages, and return the table they keep.

    Parameters
    ----------
    df : DataFrame
        The messages, streaming or not: a row each.
    schema : str or StructType
        The columns of the table, named as in the messages.
    key : str or sequence of str, optional
        Columns that identify a row. With a key old rows are restored by it. Without one they are
        rebuilt from ``data`` and ``old``, and no message may come twice.
    value : str
        The column with the text of a message, a string or bytes.
    input : {"retract", "upsert"}, optional
        Whether old rows are rebuilt from the messages or restored by ``key``. By default the
        latter where a key is given.
    sequence_by : str or sequence of str, optional
        What orders the changes of a row: columns of ``df``, or fields of a message. By default
        ``es``, the time of the change.
    table : str, optional
        The table whose messages are read, as ``orders`` or ``shop.orders``; by default all.
    metadata : str or sequence of str, optional
        Columns of ``df``, or fields such as ``es``, ``database`` or ``table``, which become
        columns of the table.
    encodings : mapping of str to str, optional
        The encodings of single columns, such as ``{"picture": "base64"}``.
    on_truncate : {"fail", "ignore"}, optional
        What to do when the table is truncated or dropped, which no row tells.
    on_error : {"fail", "drop", "return"}, optional
        What to do with a message that can't be read: ``"fail"``, the default, or ``"drop"`` it
        and count it. With ``"return"`` such rows of ``df`` are returned, and not the table, with
        the reason in a column ``_error``: write them where they are looked after.
    dead_letter : str, optional
        A directory for the messages of a stream that can't be read, as files of JSON: each with
        the reason and its other columns. They are dropped and counted, and ``on_error`` is left
        out.
    snapshot : DataFrame, optional
        The rows that the table has before the first message, as a data frame that does not
        stream. They come in the first batch, once; what ``df`` tells of them again is settled by
        ``key``.
        Columns such as ``es`` need not be there: rows without them are older than all.

    Returns
    -------
    DataFrame
        The table, an ordinary data frame.

    Examples
    --------
    >>> messages = spark.createDataFrame(
    ...     [
    ...         ('{"type": "INSERT", "es": 1, "data": [{"id": "1", "n": "5"}, {"id": "2"}]}',),
    ...         ('{"type": "UPDATE", "es": 2, "data": [{"id": "1", "n": "6"}]}',),
    ...         ('{"type": "DELETE", "es": 3, "data": [{"id": "2"}]}',),
    ...     ],
    ...     "value STRING",
    ... )
    >>> from_canal(messages, "id INT, n INT", key="id").show()
    +---+---+
    | id|  n|
    +---+---+
    |  1|  6|
    +---+---+
    <BLANKLINE>
    """
    return read(
        "from_canal",
        df,
        snapshot,
        schema=ddl(schema),
        key=columns(key),
        value=value,
        input=input,
        sequence_by=columns(sequence_by),
        table=table,
        metadata=columns(metadata),
        encodings=encodings,
        on_truncate=on_truncate,
        on_error=on_error,
        dead_letter=dead_letter,
    )


@checked
def from_upsert_kafka(
    df: DataFrame,
    schema: str | StructType,
    key: str | Sequence[str],
    *,
    value: str = "value",
    message_key: str = "key",
    sequence_by: str | Sequence[str] | None = None,
    metadata: str | Sequence[str] | None = None,
    encodings: Mapping[str, str] | None = None,
    on_error: OnRecordError | None = None,
    dead_letter: str | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read a compacted topic, and return the table it holds.

    Parameters
    ----------
    df : DataFrame
        The topic, streaming or not: a row for each record. A value is a JSON object, or NULL when
        the row with the record's key is gone.
    schema : str or StructType
        The columns of the table, named as in the values.
    key : str or sequence of str
        Those that identify a row, as the key of a record tells them: in a JSON object, or for a
        key of one column also as the bare value.
    value, message_key : str
        The columns with the value and the key of a record, strings or bytes.
    sequence_by : str or sequence of str, optional
        Columns of ``df`` that order the changes of a row. By default they count as they arrive,
        which for one topic is their order.
    metadata : str or sequence of str, optional
        Columns of ``df`` that become columns of the table, such as ``offset``.
    encodings : mapping of str to str, optional
        The encodings of single columns, such as ``{"created": "MicroTimestamp"}``.
    on_error : {"fail", "drop", "return"}, optional
        What to do with a record that can't be read: ``"fail"``, the default, or ``"drop"`` it and
        count it. With ``"return"`` such rows of ``df`` are returned, and not the table, with the
        reason in a column ``_error``: write them where they are looked after.
    dead_letter : str, optional
        A directory for the records of a stream that can't be read, as files of JSON: each with
        the reason and its other columns. They are dropped and counted, and ``on_error`` is left
        out.
    snapshot : DataFrame, optional
        The rows that the table has before the first record, as a data frame that does not stream.
        They come in the first batch, once; what ``df`` tells of them again is settled by ``key``.
        Columns that ``sequence_by`` and ``metadata`` name need not be there: rows without them
        are older than all.

    Returns
    -------
    DataFrame
        The table, an ordinary data frame.

    Examples
    --------
    >>> topic = spark.createDataFrame(
    ...     [("1", '{"city": "Oslo"}'), ("2", '{"city": "Rome"}'), ("1", None)],
    ...     "key STRING, value STRING",
    ... )
    >>> from_upsert_kafka(topic, "id INT, city STRING", key="id").show()
    +---+----+
    | id|city|
    +---+----+
    |  2|Rome|
    +---+----+
    <BLANKLINE>
    """
    return read(
        "from_upsert_kafka",
        df,
        snapshot,
        schema=ddl(schema),
        key=columns(key),
        value=value,
        message_key=message_key,
        sequence_by=columns(sequence_by),
        metadata=columns(metadata),
        encodings=encodings,
        on_error=on_error,
        dead_letter=dead_letter,
    )
