# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""An error for a wrong argument names the argument, its value and the expected type."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_changelog as changelog

FUNCTIONS = [name for name in changelog.__all__ if inspect.isfunction(getattr(changelog, name))]
PARAMETERS = [
    (name, parameter)
    for name in FUNCTIONS
    for parameter in inspect.signature(getattr(changelog, name)).parameters
]


def test_all_functions_are_found() -> None:
    classes = {"Batch", "ChangelogConf"}
    assert set(FUNCTIONS) == set(changelog.__all__) - classes


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_an_argument_of_a_wrong_type(name: str, parameter: str) -> None:
    with pytest.raises(TypeError, match=rf"^Pass .+ as `{parameter}` of {name}: got <obj"):
        getattr(changelog, name)(**{parameter: object()})


FRAMES = "spark.table(name) gives the DataFrame of a table, spark.sql(query) that of a query."
CALLS: dict[str, tuple[Callable[[DataFrame], object], str]] = {
    "a name for a data frame": (
        lambda _: changelog.from_changelog("orders"),  # type: ignore[arg-type]
        f"Pass a DataFrame as `df` of from_changelog: got 'orders', of type str. {FRAMES}",
    ),
    "a text for a query": (
        lambda _: changelog.explain("SELECT 1"),  # type: ignore[call-overload]
        "Pass a DataFrame or a StreamingQuery as `df` of explain: got 'SELECT 1', of type str. "
        f"{FRAMES}",
    ),
    "a number for a column": (
        lambda df: changelog.to_changelog(df, key=3),  # type: ignore[arg-type]
        "Pass a str or a sequence of str as `key` of to_changelog: got 3, of type int.",
    ),
    "a number among columns": (
        lambda df: changelog.from_changelog(df, key=["id", 3]),  # type: ignore[list-item]
        "Pass a str or a sequence of str as `key` of from_changelog: got ['id', 3], "
        "of type list.",
    ),
    "a column for its name": (
        lambda df: changelog.from_changelog(df, key=F.col("id")),  # type: ignore[arg-type]
        "Pass a str or a sequence of str as `key` of from_changelog: got Column<'id'>, "
        "of type Column.",
    ),
    "a format that there is not": (
        lambda df: changelog.explain(df, format="png"),  # type: ignore[call-overload]
        "Pass 'text', 'verbose', 'json', 'html' or 'svg' as `format` of explain: "
        "got 'png', of type str.",
    ),
    "a mode that there is not": (
        lambda df: changelog.to_changelog(df, mode="sideways"),  # type: ignore[arg-type]
        "Pass 'retract', 'upsert' or 'append' as `mode` of to_changelog: "
        "got 'sideways', of type str.",
    ),
    "a name for the rows of a target": (
        lambda df: changelog.evolve(df, "a", "b", target="name"),  # type: ignore[arg-type]
        f"Pass a DataFrame as `target` of evolve: got 'name', of type str. {FRAMES}",
    ),
    "a truth for a number": (
        lambda _: changelog.rescale("a", "b", partitions=True),
        "Pass an int as `partitions` of rescale: got True, of type bool.",
    ),
    "a session for a builder": (
        lambda df: changelog.configure(df.sparkSession),  # type: ignore[arg-type]
        "Pass a Builder as `builder` of configure: got <pyspark.sql",
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_likely_mistake(spark: SparkSession, call: str) -> None:
    mistake, message = CALLS[call]
    with pytest.raises((TypeError, ValueError)) as error:
        mistake(spark.range(1))
    is_choice = call in ("a format that there is not", "a mode that there is not")
    assert type(error.value) is (ValueError if is_choice else TypeError)
    assert str(error.value).startswith(message)


def test_names_may_stand_in_any_collection(spark: SparkSession) -> None:
    df = spark.range(1)
    keys: list[Any] = ["id", ["id"], ("id",), {"id"}, {"id": 1}.keys(), df.columns]
    assert all(changelog.from_changelog(df, key=key).columns == ["id"] for key in keys)


def test_an_argument_that_is_missing_or_too_many_is_told_by_python() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'df'"):
        changelog.from_changelog()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        changelog.lookup(colour=1)  # type: ignore[call-arg]
