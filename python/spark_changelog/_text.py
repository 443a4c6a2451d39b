# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Calls of the table functions as SQL text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from spark_changelog._active import sql

Argument = str | Sequence[str] | Mapping[str, str]


def select(function: str) -> str:
    """Write a query over one table function.

    Examples
    --------
    >>> select("to_changelog(TABLE({df}))")
    'SELECT * FROM to_changelog(TABLE({df}))'
    """
    return f"SELECT * FROM {function}"


def call(function: str, *frames: str, **arguments: Argument | None) -> str:
    """Write the call of a table function on ``{df}``, without arguments that are None.

    Each name in ``frames`` becomes a table argument of this name.

    Examples
    --------
    >>> call("to_changelog", mode="upsert", key=["a", "b"])
    "to_changelog(TABLE({df}), mode => 'upsert', key => array('a', 'b'))"
    >>> call("to_changelog", mode=None)
    'to_changelog(TABLE({df}))'
    >>> call("from_changelog", "snapshot", key="id")
    "from_changelog(TABLE({df}), key => 'id', snapshot => TABLE({snapshot}))"
    """
    named = [f"{name} => {literal(arg)}" for name, arg in arguments.items() if arg is not None]
    tables = [f"{name} => TABLE({{{name}}})" for name in frames]
    return f"{function}({', '.join(['TABLE({df})', *named, *tables])})"


def read(
    function: str, df: DataFrame, snapshot: DataFrame | None, **arguments: Argument | None
) -> DataFrame:
    """Return the result of a table function over ``df`` and an optional snapshot."""
    frames: dict[str, Any] = {} if snapshot is None else {"snapshot": snapshot}
    text = select(call(function, *frames, **arguments))
    return sql(df.sparkSession, text, df=df, **frames)


def columns(names: str | Sequence[str] | None) -> list[str] | None:
    """Return one name or several names as a list, and None for None.

    Examples
    --------
    >>> columns("id"), columns(("a", "b")), columns(None)
    (['id'], ['a', 'b'], None)
    """
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def ddl(schema: str | StructType) -> str:
    """Return columns as DDL.

    Examples
    --------
    >>> ddl(StructType().add("id", "integer", nullable=False).add("my name", "string"))
    'id INT NOT NULL,`my name` STRING'
    """
    return schema if isinstance(schema, str) else schema.toDDL()


def quoted(text: str) -> str:
    r"""Write a string as a SQL literal.

    Examples
    --------
    >>> print(quoted("it's {here}"))
    'it\'s {here}'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def literal(value: Argument) -> str:
    r"""Write a SQL literal with doubled braces, since ``sql`` fills in ``{df}`` and the like.

    Examples
    --------
    >>> print(literal("it's"), literal(["a{b}"]), literal({"ins": "+I"}))
    'it\'s' array('a{{b}}') map('ins', '+I')
    """
    if isinstance(value, str):
        return quoted(value).replace("{", "{{").replace("}", "}}")
    if isinstance(value, Mapping):
        pairs = [literal(word) for pair in value.items() for word in pair]
        return f"map({', '.join(pairs)})"
    return f"array({', '.join(map(literal, value))})"
