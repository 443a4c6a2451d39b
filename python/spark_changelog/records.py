# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Tables from change records such as the events of Debezium and Canal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

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
OnTruncate = Literal["fail", "ignore", "apply"]
OnSchemaChange = Literal["ignore", "fail"]


@checked
def from_debezium(
    df: DataFrame,
    schema: str | StructType,
    key: str | Sequence[str] | None = None,
    *,
    value: str = "value",
    message_key: str | None = None,
    schema_registry: str | None = None,
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
    on_schema_change: OnSchemaChange | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read Debezium's change events, and return the replicated table.

    Parameters
    ----------
    df : DataFrame
        The events, one row per event, streaming or not, from Kafka, files or any source.
    schema : str or StructType
        The columns of the table, named as in the events.
    key : str or sequence of str, optional
        Columns that identify a row. With a key, before images are restored by key, and repeated
        or late events have no effect. Without a key every event must have a before image.
    value : str
        The column with an event's JSON, a string or bytes.
    message_key : str, optional
        The column with the key of an event, for deletes without a before image.
    schema_registry : str, optional
        The address of a schema registry, such as ``"http://registry:8081"``, for events in Avro
        or Protobuf in Confluent's wire format. The setting
        ``spark.sql.changelog.schemaRegistry.password`` holds the password.
    input : {"retract", "upsert"}, optional
        The origin of before images: ``"retract"`` reads them from the events, ``"upsert"``
        restores them by ``key``. By default ``"upsert"`` with a key, ``"retract"`` without.
    sequence_by : str or sequence of str, optional
        The order of a row's changes: columns of ``df``, or fields such as ``source.lsn``. By
        default the position in the log of PostgreSQL, MySQL or MariaDB, then ``source.ts_ms``.
    table : str, optional
        The source table to read, as ``orders`` or ``public.orders``. By default every event is
        read.
    metadata : str or sequence of str, optional
        Columns of ``df``, or fields such as ``source.ts_ms``, ``transaction.id`` or ``op``, to
        add to the table. The values are from the last change of each row.
    decimal_handling_mode, time_precision_mode, binary_handling_mode : str, optional
        The connector's settings of these names, for events without a schema.
    encodings : mapping of str to str, optional
        The encodings of single columns, such as ``{"created": "MicroTimestamp"}``.
    unavailable_value : str, optional
        The connector's ``unavailable.value.placeholder``.
    on_truncate : {"fail", "ignore", "apply"}, optional
        The reaction to a truncated table. ``"apply"`` deletes the rows of earlier changes, and
        requires ``input="upsert"``.
    on_error : {"fail", "drop", "return"}, optional
        The reaction to an unreadable event: ``"fail"``, the default, or ``"drop"`` and count the
        event. ``"return"`` returns the unreadable rows of ``df`` in place of the table, with the
        reason in a column ``_error``, for example to write them to a separate table.
    dead_letter : str, optional
        A directory for the unreadable events of a stream. Each is written as JSON with the reason
        and its columns, and is dropped and counted. Leave out ``on_error`` then.
    on_schema_change : {"ignore", "fail"}, optional
        The reaction to columns of a new row that ``schema`` does not list: ``"ignore"``, the
        default, skips the columns. ``"fail"`` makes the event unreadable.
    snapshot : DataFrame, optional
        The rows of the table before the first event, as a batch data frame. The first batch
        inserts the rows. ``key`` resolves events already in the snapshot. Columns such as
        ``source_lsn`` are optional: rows without them are older than every event.

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
    return _read("from_debezium", **locals())


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
    on_schema_change: OnSchemaChange | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read Canal's flat messages, and return the replicated table.

    Parameters
    ----------
    df : DataFrame
        The messages, one row per message, streaming or not.
    schema : str or StructType
        The columns of the table, named as in the messages.
    key : str or sequence of str, optional
        Columns that identify a row. With a key, before images are restored by key. Without a key
        they are rebuilt from ``data`` and ``old``, and every message must arrive exactly once.
    value : str
        The column with a message's JSON, a string or bytes.
    input : {"retract", "upsert"}, optional
        The origin of before images: ``"retract"`` rebuilds them from the messages, ``"upsert"``
        restores them by ``key``. By default ``"upsert"`` with a key, ``"retract"`` without.
    sequence_by : str or sequence of str, optional
        The order of a row's changes: columns of ``df``, or fields of a message. By default
        ``es``, the time of the change.
    table : str, optional
        The source table to read, as ``orders`` or ``shop.orders``. By default every message is
        read.
    metadata : str or sequence of str, optional
        Columns of ``df``, or fields such as ``es``, ``database`` or ``table``, to add to the
        table.
    encodings : mapping of str to str, optional
        The encodings of single columns, such as ``{"picture": "base64"}``.
    on_truncate : {"fail", "ignore", "apply"}, optional
        The reaction to a truncated or dropped table. ``"apply"`` deletes the rows of earlier
        changes, and requires ``input="upsert"``.
    on_error : {"fail", "drop", "return"}, optional
        The reaction to an unreadable message: ``"fail"``, the default, or ``"drop"`` and count
        the message. ``"return"`` returns the unreadable rows of ``df`` in place of the table,
        with the reason in a column ``_error``, for example to write them to a separate table.
    dead_letter : str, optional
        A directory for the unreadable messages of a stream. Each is written as JSON with the
        reason and its columns, and is dropped and counted. Leave out ``on_error`` then.
    on_schema_change : {"ignore", "fail"}, optional
        The reaction to columns of a new row that ``schema`` does not list: ``"ignore"``, the
        default, skips the columns. ``"fail"`` makes the message unreadable.
    snapshot : DataFrame, optional
        The rows of the table before the first message, as a batch data frame. The first batch
        inserts the rows. ``key`` resolves messages already in the snapshot. Columns such as
        ``es`` are optional: rows without them are older than every message.

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
    return _read("from_canal", **locals())


@checked
def from_maxwell(
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
    on_schema_change: OnSchemaChange | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read messages of Maxwell's daemon, and return the replicated table.

    Parameters
    ----------
    df : DataFrame
        The messages, one row per message, streaming or not.
    schema : str or StructType
        The columns of the table, named as in the messages.
    key : str or sequence of str, optional
        Columns that identify a row. With a key, before images are restored by key. Without a key
        they are rebuilt from ``data`` and ``old``, and every message must arrive exactly once.
    value : str
        The column with a message's JSON, a string or bytes.
    input : {"retract", "upsert"}, optional
        The origin of before images: ``"retract"`` rebuilds them from the messages, ``"upsert"``
        restores them by ``key``. By default ``"upsert"`` with a key, ``"retract"`` without.
    sequence_by : str or sequence of str, optional
        The order of a row's changes: columns of ``df``, or fields of a message. By default
        ``ts``, the second of the change, then the order of arrival.
    table : str, optional
        The source table to read, as ``orders`` or ``shop.orders``. By default every message is
        read.
    metadata : str or sequence of str, optional
        Columns of ``df``, or fields such as ``ts``, ``database`` or ``table``, to add to the
        table.
    encodings : mapping of str to str, optional
        The encodings of single columns, such as ``{"picture": "base64"}``.
    on_truncate : {"fail", "ignore", "apply"}, optional
        The reaction to a dropped table. Maxwell writes no message for a truncation. ``"apply"``
        deletes the rows of earlier changes, and requires ``input="upsert"``.
    on_error : {"fail", "drop", "return"}, optional
        The reaction to an unreadable message: ``"fail"``, the default, or ``"drop"`` and count
        the message. ``"return"`` returns the unreadable rows of ``df`` in place of the table,
        with the reason in a column ``_error``, for example to write them to a separate table.
    dead_letter : str, optional
        A directory for the unreadable messages of a stream. Each is written as JSON with the
        reason and its columns, and is dropped and counted. Leave out ``on_error`` then.
    on_schema_change : {"ignore", "fail"}, optional
        The reaction to columns of a new row that ``schema`` does not list: ``"ignore"``, the
        default, skips the columns. ``"fail"`` makes the message unreadable.
    snapshot : DataFrame, optional
        The rows of the table before the first message, as a batch data frame. The first batch
        inserts the rows. ``key`` resolves messages already in the snapshot. Columns such as
        ``ts`` are optional: rows without them are older than every message.

    Returns
    -------
    DataFrame
        The table, an ordinary data frame.

    Examples
    --------
    >>> messages = spark.createDataFrame(
    ...     [
    ...         ('{"type": "insert", "ts": 1, "data": {"id": 1, "n": 5}}',),
    ...         ('{"type": "update", "ts": 2, "data": {"id": 1, "n": 6}, "old": {"n": 5}}',),
    ...     ],
    ...     "value STRING",
    ... )
    >>> from_maxwell(messages, "id INT, n INT", key="id").show()
    +---+---+
    | id|  n|
    +---+---+
    |  1|  6|
    +---+---+
    <BLANKLINE>
    """
    return _read("from_maxwell", **locals())


@checked
def from_goldengate(
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
    on_schema_change: OnSchemaChange | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read JSON messages of Oracle GoldenGate, and return the replicated table.

    Parameters
    ----------
    df : DataFrame
        The messages, one row per message, streaming or not.
    schema : str or StructType
        The columns of the table, named as in the messages.
    key : str or sequence of str, optional
        Columns that identify a row. With a key, before images are restored by key. Without a key
        they are read from ``before``, and every message must arrive exactly once.
    value : str
        The column with a message's JSON, a string or bytes.
    input : {"retract", "upsert"}, optional
        The origin of before images: ``"retract"`` reads them from the messages, ``"upsert"``
        restores them by ``key``. By default ``"upsert"`` with a key, ``"retract"`` without.
    sequence_by : str or sequence of str, optional
        The order of a row's changes: columns of ``df``, or fields of a message. By default
        ``pos``, the position in the trail.
    table : str, optional
        The source table to read, as ``ORDERS`` or ``SHOP.ORDERS``. By default every message is
        read.
    metadata : str or sequence of str, optional
        Columns of ``df``, or fields such as ``pos``, ``op_ts`` or ``table``, to add to the
        table.
    encodings : mapping of str to str, optional
        The encodings of single columns, such as ``{"picture": "base64"}``.
    on_truncate : {"fail", "ignore", "apply"}, optional
        The reaction to a truncated table. ``"apply"`` deletes the rows of earlier
        changes, and requires ``input="upsert"``.
    on_error : {"fail", "drop", "return"}, optional
        The reaction to an unreadable message: ``"fail"``, the default, or ``"drop"`` and count
        the message. ``"return"`` returns the unreadable rows of ``df`` in place of the table,
        with the reason in a column ``_error``, for example to write them to a separate table.
    dead_letter : str, optional
        A directory for the unreadable messages of a stream. Each is written as JSON with the
        reason and its columns, and is dropped and counted. Leave out ``on_error`` then.
    on_schema_change : {"ignore", "fail"}, optional
        The reaction to columns of a new row that ``schema`` does not list: ``"ignore"``, the
        default, skips the columns. ``"fail"`` makes the message unreadable.
    snapshot : DataFrame, optional
        The rows of the table before the first message, as a batch data frame. The first batch
        inserts the rows. ``key`` resolves messages already in the snapshot. Columns such as
        ``pos`` are optional: rows without them are older than every message.

    Returns
    -------
    DataFrame
        The table, an ordinary data frame.

    Examples
    --------
    >>> messages = spark.createDataFrame(
    ...     [
    ...         ('{"op_type": "I", "pos": "01", "after": {"ID": 1, "N": 5}}',),
    ...         ('{"op_type": "U", "pos": "02", "after": {"ID": 1, "N": 6}}',),
    ...     ],
    ...     "value STRING",
    ... )
    >>> from_goldengate(messages, "ID INT, N INT", key="ID").show()
    +---+---+
    | ID|  N|
    +---+---+
    |  1|  6|
    +---+---+
    <BLANKLINE>
    """
    return _read("from_goldengate", **locals())


@checked
def from_upsert_kafka(
    df: DataFrame,
    schema: str | StructType,
    key: str | Sequence[str],
    *,
    value: str = "value",
    message_key: str = "key",
    schema_registry: str | None = None,
    sequence_by: str | Sequence[str] | None = None,
    metadata: str | Sequence[str] | None = None,
    encodings: Mapping[str, str] | None = None,
    on_error: OnRecordError | None = None,
    dead_letter: str | None = None,
    on_schema_change: OnSchemaChange | None = None,
    snapshot: DataFrame | None = None,
) -> DataFrame:
    """Read a compacted topic, and return the table of the newest rows.

    Parameters
    ----------
    df : DataFrame
        The topic, one row per record, streaming or not. The value of a record is a JSON object,
        or NULL for a tombstone.
    schema : str or StructType
        The columns of the table, named as in the values.
    key : str or sequence of str
        Columns that identify a row, also stored in the record's key: as a JSON object, or for a
        single column as the bare value.
    value, message_key : str
        The columns with the value and the key of a record, strings or bytes.
    schema_registry : str, optional
        The address of a schema registry, for values and keys in Avro or Protobuf in Confluent's
        wire format.
    sequence_by : str or sequence of str, optional
        Columns of ``df`` that order the changes of a row. By default changes apply in order of
        arrival, which is correct for a single topic.
    metadata : str or sequence of str, optional
        Columns of ``df`` to add to the table, such as ``offset``.
    encodings : mapping of str to str, optional
        The encodings of single columns, such as ``{"created": "MicroTimestamp"}``.
    on_error : {"fail", "drop", "return"}, optional
        The reaction to an unreadable record: ``"fail"``, the default, or ``"drop"`` and count the
        record. ``"return"`` returns the unreadable rows of ``df`` in place of the table, with the
        reason in a column ``_error``, for example to write them to a separate table.
    dead_letter : str, optional
        A directory for the unreadable records of a stream. Each is written as JSON with the
        reason and its columns, and is dropped and counted. Leave out ``on_error`` then.
    on_schema_change : {"ignore", "fail"}, optional
        The reaction to columns of a new row that ``schema`` does not list: ``"ignore"``, the
        default, skips the columns. ``"fail"`` makes the record unreadable.
    snapshot : DataFrame, optional
        The rows of the table before the first record, as a batch data frame. The first batch
        inserts the rows. ``key`` resolves records already in the snapshot. The columns of
        ``sequence_by`` and ``metadata`` are optional: rows without them are older than every
        record.

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
    return _read("from_upsert_kafka", **locals())


def _read(
    function: str, df: DataFrame, snapshot: DataFrame | None, **arguments: Any
) -> DataFrame:
    """Call a table function with all arguments of a function above."""
    arguments["schema"] = ddl(arguments["schema"])
    for name in ("key", "sequence_by", "metadata"):
        arguments[name] = columns(arguments[name])
    return read(function, df, snapshot, **arguments)
