# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Dry runs: a query over sample rows, with the changes emitted by every node."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from pyspark.sql import DataFrame

from spark_changelog._arguments import checked
from spark_changelog._text import literal
from spark_changelog.explain import Explanation, explained
from spark_changelog.functions import Mode

Changes = Sequence[Any]
Batch = Mapping[str, Changes]


@overload
def dry_run(
    df: DataFrame,
    rows: int | str | Batch | Sequence[Batch] = ...,
    mode: Mode = ...,
    format: Literal["text", "verbose", "html", "svg"] = ...,
    key: str | Sequence[str] | None = ...,
) -> Explanation: ...


@overload
def dry_run(
    df: DataFrame,
    rows: int | str | Batch | Sequence[Batch] = ...,
    mode: Mode = ...,
    *,
    format: Literal["json"],
    key: str | Sequence[str] | None = ...,
) -> dict[str, Any]: ...


@checked
def dry_run(
    df: DataFrame,
    rows: int | str | Batch | Sequence[Batch] = 10,
    mode: Mode = "retract",
    format: Literal["text", "verbose", "json", "html", "svg"] = "text",
    key: str | Sequence[str] | None = None,
) -> Explanation | dict[str, Any]:
    """Run ``to_changelog(df, mode, key)`` over a few rows, and show the changes of each node.

    The query runs in batches, with the same operators as a started query. The sample rows replace
    the sources. A temporary checkpoint and sink are deleted after the run.

    Parameters
    ----------
    df : DataFrame
        The query, as for `to_changelog`.
    rows : int, str, mapping or sequence of mapping
        The sample rows, in one of these forms:

        - A number takes the first rows of each source. Each batch has one row per source.
        - A string has one change per line, such as ``rides +I 1 Oslo 5``. Each line is a batch,
          unless the line begins with ``&``. With a single source, lines need no source name.
        - A mapping is one batch, and a sequence of mappings several batches: changes by source
          name, as strings or as rows. The first value of a row is the row kind.

        The name of a source is its view, its alias, or its number, counted from 1.
    mode, key
        As in `to_changelog`.
    format : {"text", "verbose", "json", "html", "svg"}
        As in `explain`. In ``"json"``, each node lists its changes under ``"emitted"``, with one
        list per batch.

    Returns
    -------
    Explanation or dict
        The plan from its root down, with the changes emitted by each node in each batch.
        Notebooks draw an `Explanation` as a picture.

    See Also
    --------
    explain : shows the plan without running the query.

    Examples
    --------
    >>> from spark_changelog import from_changelog
    >>> changes = spark.readStream.format("rate").load().selectExpr(
    ...     "'+I' AS op", "value AS id", "'Oslo' AS city", "1 AS fare"
    ... )
    >>> rides = from_changelog(changes, change_type="op", key="id")
    >>> totals = rides.groupBy("city").sum("fare")
    >>> rows = '''
    ...     +I 1 Oslo 5
    ...     +I 2 Oslo 2
    ...     -D 1 Oslo 5
    ... '''
    >>> tree = dry_run(totals, rows, format="json")
    >>> for batch in tree["emitted"]:
    ...     print(*sorted(batch), sep=", ")
    +I Oslo 5
    +U Oslo 7, -U Oslo 5
    +U Oslo 2, -U Oslo 7
    """
    sample = f"{rows} ROWS" if isinstance(rows, int) else literal(_text(rows))
    return explained(df, mode, format, key, f"DRY RUN OVER {sample}")


def _text(rows: str | Batch | Sequence[Batch]) -> str:
    if isinstance(rows, str):
        return rows
    batches = [rows] if isinstance(rows, Mapping) else rows
    return "\n".join(
        f"{'& ' if index else ''}{_word(name)} {change}"
        for batch in batches
        for index, (name, change) in enumerate(_changes(batch))
    )


def _changes(batch: Batch) -> list[tuple[str, str]]:
    return [(name, _change(change)) for name, given in batch.items() for change in given]


def _change(change: Any) -> str:
    """Write a change as one line.

    Examples
    --------
    >>> _change("+I Oslo 5"), _change(("-D", "Oslo", None)), _change(("+I", {"fare": 1.5}))
    ('+I Oslo 5', '-D ["Oslo", null]', '+I {"fare": 1.5}')
    """
    if isinstance(change, str):
        return change
    kind, *values = change
    row = values[0] if len(values) == 1 and isinstance(values[0], Mapping) else values
    return f"{kind} {json.dumps(_plain(row), default=str)}"


def _plain(value: Any) -> Any:
    """Write values without a JSON form, such as NaN or bytes, as strings that Spark can cast."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _word(name: object) -> str:
    text = str(name)
    if text and not any(char.isspace() for char in text) and text[0] not in "'&+-":
        return text
    return "'" + text.replace("'", "''") + "'"
