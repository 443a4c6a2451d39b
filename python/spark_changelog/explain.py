# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Shows how the changes of a query are maintained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, overload

from pyspark.sql import DataFrame

from spark_changelog._text import call, columns, select
from spark_changelog.functions import Mode


@overload
def explain(
    df: DataFrame,
    mode: Mode = ...,
    format: Literal["text", "verbose"] = ...,
    key: str | Sequence[str] | None = ...,
) -> str: ...


@overload
def explain(
    df: DataFrame,
    mode: Mode = ...,
    *,
    format: Literal["json"],
    key: str | Sequence[str] | None = ...,
) -> dict[str, Any]: ...


def explain(
    df: DataFrame,
    mode: Mode = "retract",
    format: Literal["text", "verbose", "json"] = "text",
    key: str | Sequence[str] | None = None,
) -> str | dict[str, Any]:
    """Tell, node by node, how ``to_changelog(df, mode, key)`` would be maintained.

    Each line has the kinds of change a node emits, such as ``[I,UB,UA,D]``, its unique key, the
    state it keeps and what bounds that, the strategy, and why ``update_preimage`` is sent or not.

    Parameters
    ----------
    df : DataFrame
        The query, as it would be given to `to_changelog`.
    mode : {"retract", "upsert", "append"}
        As in `to_changelog`.
    format : {"text", "verbose", "json"}
        ``"text"`` prints the tree and returns it; ``"verbose"`` with what `from_debezium` and its
        like are made of; ``"json"`` returns all of it as nested dicts.
    key : str or sequence of str, optional
        As in `to_changelog`.

    Returns
    -------
    str or dict
        The tree, from its root down.

    Examples
    --------
    >>> words = spark.readStream.format("rate").load()
    >>> counts = words.groupBy("value").count()
    >>> tree = explain(counts, mode="upsert", format="json")
    >>> tree["mode"]
    ['I', 'UA']
    """
    function = call("to_changelog", mode=mode, key=columns(key))
    forms = {"text": "FORMAT TEXT", "verbose": "VERBOSE", "json": "FORMAT JSON"}
    command = f"EXPLAIN CHANGELOG {forms[format]} {select(function)}"
    row = df.sparkSession.sql(command, df=df).collect()[0]
    if format == "json":
        tree: dict[str, Any] = json.loads(row[0])
        return tree
    text: str = row[0]
    print(text)
    return text
