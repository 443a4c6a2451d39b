# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Sessions for queries under test, and the conversion of their input and output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)
from pyspark.sql.utils import is_remote

from spark_changelog.session import EXTENSION
from spark_changelog.testing._changes import Change, checked_kind, comparable, split
from spark_changelog.testing._feeds import Arrival, Feed

KIND = "_kind"
"""The column with the row kind in a feed's files."""

EXACTLY = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
"""Options to write values as JSON without loss."""

# Batch queries over a few rows run faster without code generation.
_BATCH_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def check_session(spark: SparkSession) -> None:
    """Raise an error with a remedy if the session can't test queries."""
    if is_remote():
        raise NotImplementedError("the test kit needs a classic session, not Spark Connect")
    if EXTENSION not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise ValueError(
            "the session has no spark-changelog extension: create the session with "
            "spark_changelog.configure(builder), or use the fixture changelog_session"
        )


def new_session(spark: SparkSession) -> SparkSession:
    """Return a new session with the settings of ``spark``."""
    session = spark.newSession()
    has = session.conf.getAll
    for name, value in spark.conf.getAll.items():
        if has.get(name) != value and session.conf.isModifiable(name):
            session.conf.set(name, value)
    return session


def batch_session(spark: SparkSession) -> SparkSession:
    """Return a new session for small batch queries."""
    session = new_session(spark)
    for name, value in _BATCH_SETTINGS.items():
        session.conf.set(name, value)
    return session


def schema_of(feed: Feed) -> StructType:
    """Return the columns of a feed."""
    given = feed.columns
    schema = given if isinstance(given, StructType) else StructType.fromDDL(given)
    return cast("StructType", schema)


def raw_schema(feed: Feed) -> StructType:
    """Return the columns of a feed's files."""
    kind = [] if feed.insert_only else [StructField(KIND, StringType())]
    return StructType(kind + schema_of(feed).fields)


def arrivals(session: SparkSession, feed: Feed, given: Sequence[Any]) -> list[Arrival]:
    """Read changes from strings, or from rows with the row kind as first value.

    Spark casts the strings, and writes the values as JSON.
    """
    as_text = [index for index, change in enumerate(given) if isinstance(change, str)]
    as_rows = [index for index, change in enumerate(given) if not isinstance(change, str)]
    schema = schema_of(feed)
    found: dict[int, Arrival] = {}
    for indices, read in (as_text, _of_text), (as_rows, _of_rows):
        changes = [read(given[index], feed, len(schema)) for index in indices]
        if changes:
            frame = _frame(session, schema, [values for _, values in changes], read is _of_text)
            rows = frame.select(F.struct("*"), F.to_json(F.struct("*"), EXACTLY)).collect()
            for index, (kind, _), (values, json) in zip(indices, changes, rows, strict=True):
                line = f'{{"{KIND}":"{kind}",{json[1:]}'
                found[index] = Arrival(feed.name, kind, tuple(values), line, given[index])
    return [found[index] for index in range(len(given))]


def _of_text(text: str, feed: Feed, size: int) -> tuple[str, list[str | None]]:
    kind, words = split(text)
    if len(words) != size:
        raise ValueError(f"'{text}' does not have the columns of {feed.name}: {feed.columns}")
    return kind, words


def _of_rows(change: Sequence[Any], feed: Feed, size: int) -> tuple[str, list[Any]]:
    kind, *values = change
    if len(values) != size:
        raise ValueError(
            f"{change!r} is not a kind and the columns of {feed.name}: {feed.columns}"
        )
    return checked_kind(kind, change), values


def _frame(
    session: SparkSession, schema: StructType, rows: list[list[Any]], is_text: bool
) -> DataFrame:
    if not is_text:
        return session.createDataFrame([tuple(row) for row in rows], schema)
    texts = _texts(session, rows, len(schema))
    typed = [F.col(f"c{i}").cast(field.dataType) for i, field in enumerate(schema)]
    return texts.select(
        *[column.alias(name) for column, name in zip(typed, schema.names, strict=True)]
    )


def _texts(session: SparkSession, rows: Sequence[Sequence[str | None]], size: int) -> DataFrame:
    schema = StructType([StructField(f"c{i}", StringType()) for i in range(size)])
    return session.createDataFrame([tuple(row) for row in rows], schema)


def canonical(
    session: SparkSession, schema: StructType, changes: Sequence[str]
) -> list[tuple[str, tuple[str | None, ...]]]:
    """Write expected changes as Spark does: ``1.50`` for ``1.5`` as a decimal of scale 2."""
    pairs = [split(text) for text in changes]
    for text, (_, words) in zip(changes, pairs, strict=True):
        if len(words) != len(schema):
            raise ValueError(f"'-> {text}' does not have the columns {', '.join(schema.names)}")
    if not pairs:
        return []
    nested = (ArrayType, MapType, StructType, VariantType)
    columns = [
        F.col(f"c{i}")
        if isinstance(field.dataType, nested)
        else F.coalesce(F.col(f"c{i}").try_cast(field.dataType).cast("string"), F.col(f"c{i}"))
        for i, field in enumerate(schema)
    ]
    texts = _texts(session, [words for _, words in pairs], len(schema))
    rows = texts.select(*columns).collect()
    return [(kind, tuple(row)) for (kind, _), row in zip(pairs, rows, strict=True)]


def collect(frame: DataFrame) -> list[Change]:
    """Return a data frame's rows as changes, with kinds from a last column ``_change_type``."""
    has_kind = frame.columns[-1:] == ["_change_type"]
    size = len(frame.columns) - has_kind
    renamed = frame.toDF(*[f"c{i}" for i in range(len(frame.columns))])
    texts = [F.col(f"c{i}").cast("string") for i in range(size)]
    changes = []
    for row in renamed.select("*", *texts).collect():
        kind = checked_kind(row[size], row) if has_kind else "+I"
        changes.append(Change(kind, comparable(row[:size]), tuple(row[size + has_kind :])))
    return changes


Prepare = Callable[[SparkSession], Any]
