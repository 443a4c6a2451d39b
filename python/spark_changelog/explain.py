# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Plans of changelog queries: operators, row kinds, keys and state."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, overload, runtime_checkable

from pyspark.sql import DataFrame, SparkSession

from spark_changelog._active import sql
from spark_changelog._arguments import checked
from spark_changelog._text import call, columns, select
from spark_changelog.functions import Mode


@runtime_checkable
class StreamingQuery(Protocol):
    """A started query, classic or Connect. Neither class can be imported in every environment."""

    @property
    def runId(self) -> str:
        """The id of the run."""


class Explanation(str):
    """The text of `explain` or `dry_run`. Notebooks draw the text as a picture."""

    _statement: Callable[[str], str]

    @classmethod
    def _of(cls, form: str, statement: Callable[[str], str]) -> Explanation:
        explanation = cls(statement(form))
        explanation._statement = statement
        return explanation

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self._statement("FORMAT SVG")}</div>'


@overload
def explain(
    df: DataFrame | StreamingQuery,
    mode: Mode = ...,
    format: Literal["text", "verbose", "html", "svg"] = ...,
    key: str | Sequence[str] | None = ...,
) -> Explanation: ...


@overload
def explain(
    df: DataFrame | StreamingQuery,
    mode: Mode = ...,
    *,
    format: Literal["json"],
    key: str | Sequence[str] | None = ...,
) -> dict[str, Any]: ...


@checked
def explain(
    df: DataFrame | StreamingQuery,
    mode: Mode = "retract",
    format: Literal["text", "verbose", "json", "html", "svg"] = "text",
    key: str | Sequence[str] | None = None,
) -> Explanation | dict[str, Any]:
    """Show the plan of ``to_changelog(df, mode, key)``, node by node.

    Each line shows the changelog mode of a node, such as ``[I,UB,UA,D]``, and the node's upsert
    key. A line also shows the state with its bound, the strategy, and the reason for or against
    before images.

    For a running query, each operator also shows metrics of the last batch: changes read, changes
    emitted, stored state and time spent.

    Parameters
    ----------
    df : DataFrame or StreamingQuery
        The query, as for `to_changelog`, or a started query.
    mode : {"retract", "upsert", "append"}
        As in `to_changelog`. Ignored for a started query.
    format : {"text", "verbose", "json", "html", "svg"}
        - ``"text"`` prints and returns the plan.
        - ``"verbose"`` also shows the nodes inside `from_debezium` and similar functions.
        - ``"json"`` returns the plan as nested dicts.
        - ``"html"`` returns a self-contained page with a picture.
        - ``"svg"`` returns the picture alone.
    key : str or sequence of str, optional
        As in `to_changelog`. Ignored for a started query.

    Returns
    -------
    Explanation or dict
        The plan from its root down. Notebooks draw an `Explanation` as a picture.

    Examples
    --------
    >>> words = spark.readStream.format("rate").load()
    >>> counts = words.groupBy("value").count()
    >>> tree = explain(counts, mode="upsert", format="json")
    >>> tree["mode"]
    ['I', 'UA']
    >>> explain(counts, format="svg")[:4]
    '<svg'
    """
    if isinstance(df, DataFrame):
        return explained(df, mode, format, key)
    return _shown(_of_query(df), format)


def explained(
    df: DataFrame,
    mode: Mode,
    format: str,
    key: str | Sequence[str] | None,
    way: str = "",
) -> Explanation | dict[str, Any]:
    """Explain a query that is not running. ``way`` adds words to the statement."""
    query = select(call("to_changelog", mode=mode, key=columns(key)))

    def text_as(form: str) -> str:
        statement = f"EXPLAIN CHANGELOG {form} {way} {query}"
        text: str = sql(df.sparkSession, statement, df=df).collect()[0][0]
        return text

    return _shown(text_as, format)


def _shown(statement: Callable[[str], str], format: str) -> Explanation | dict[str, Any]:
    forms = {"text": "FORMAT TEXT", "verbose": "VERBOSE"}
    form = forms.get(format, f"FORMAT {format.upper()}")
    if format == "json":
        tree: dict[str, Any] = json.loads(statement(form))
        return tree
    text = Explanation._of(form, statement)
    if format in forms:
        print(text)
    return text


def _of_query(query: StreamingQuery) -> Callable[[str], str]:
    # A query of Spark Connect has its session.
    session: SparkSession = getattr(query, "_session", None) or SparkSession.active()

    def explained(form: str) -> str:
        statement = f"EXPLAIN CHANGELOG {form} QUERY '{query.runId}'"
        text: str = sql(session, statement).collect()[0][0]
        return text

    return explained
