# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Shows how the changes of a query are maintained."""

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
    """A started query. Importing PySpark's class needs py4j, that of Spark Connect needs grpc."""

    @property
    def runId(self) -> str:
        """The id of the run."""


class Explanation(str):
    """A text that `explain` has given; a notebook shows it as a picture."""

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
    """Tell, node by node, how ``to_changelog(df, mode, key)`` would be maintained.

    Each line has the kinds of change a node emits, such as ``[I,UB,UA,D]``, its unique key, the
    state it keeps and what bounds that, the strategy, and why ``update_preimage`` is sent or not.

    Of a query that runs it tells what each operator has done in the last batch as well: the
    changes that came and went, the state it keeps, and how long that took.

    Parameters
    ----------
    df : DataFrame or StreamingQuery
        The query, as it would be given to `to_changelog`; or one that has been started.
    mode : {"retract", "upsert", "append"}
        As in `to_changelog`. A started query has its own.
    format : {"text", "verbose", "json", "html", "svg"}
        ``"text"`` prints the tree and returns it; ``"verbose"`` with what `from_debezium` and its
        like are made of; ``"json"`` returns all of it as nested dicts; ``"html"`` a page that
        draws it, which needs nothing else; ``"svg"`` the picture alone.
    key : str or sequence of str, optional
        As in `to_changelog`. A started query has its own.

    Returns
    -------
    Explanation or dict
        The tree, from its root down: a text, which notebooks show as a picture.

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
    """Explain a query that doesn't run, in words of the statement that say in which way."""
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
    # one of Spark Connect knows its session
    session: SparkSession = getattr(query, "_session", None) or SparkSession.active()

    def explained(form: str) -> str:
        statement = f"EXPLAIN CHANGELOG {form} QUERY '{query.runId}'"
        text: str = sql(session, statement).collect()[0][0]
        return text

    return explained
