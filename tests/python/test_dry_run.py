# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`dry_run` accepts each form of sample rows, and shows the emitted changes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from spark_changelog import dry_run, from_changelog

COLUMNS = "op STRING, id INT, city STRING, fare INT"


@pytest.fixture
def inbox(feed: Callable[[str], Path]) -> Path:
    return feed("")


@pytest.fixture
def totals(spark: SparkSession, inbox: Path) -> DataFrame:
    raw = spark.readStream.schema(COLUMNS).csv(str(inbox))
    rides = from_changelog(raw, change_type="op", key="id").alias("rides")
    return rides.groupBy("city").sum("fare")


def emitted(tree: dict[str, Any]) -> list[list[str]]:
    return [sorted(batch) for batch in tree["emitted"]]


EXPECTED = [["+I Oslo 7"], ["+U Oslo 2", "-U Oslo 7"]]


@pytest.mark.parametrize(
    "rows",
    [
        "rides +I 1 Oslo 5\n& rides +I 2 Oslo 2\nrides -D 1 Oslo 5",
        "+I 1 Oslo 5\n& +I 2 Oslo 2\n-D 1 Oslo 5",
        [{"rides": ["+I 1 Oslo 5", "+I 2 Oslo 2"]}, {"rides": ["-D 1 Oslo 5"]}],
        [{"1": [("+I", 1, "Oslo", 5), ("+I", 2, "Oslo", 2)]}, {"1": [("-D", 1, "Oslo", 5)]}],
        [
            {"rides": [("+I", {"id": 1, "city": "Oslo", "fare": 5}), "+I 2 Oslo 2"]},
            {"rides": [("-D", {"fare": 5, "city": "Oslo", "id": 1})]},
        ],
    ],
)
def test_rows_in_each_form(totals: DataFrame, rows: Any) -> None:
    assert emitted(dry_run(totals, rows, format="json")) == EXPECTED


def test_the_text_is_printed_and_drawn(
    totals: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    text = dry_run(totals, {"rides": [("+I", 1, "New York", None)]})
    assert capsys.readouterr().out.strip() == text.strip()
    assert "> 1: +I 'New York' NULL" in text
    assert "1: +I 'New York' NULL" in text._repr_html_()


def test_the_first_rows_of_a_source(totals: DataFrame, inbox: Path) -> None:
    (inbox / "1.csv").write_text("+I,1,Oslo,5\n+I,2,Rome,3\n+I,3,Oslo,1\n")
    tree = dry_run(totals, 2, format="json")
    assert emitted(tree) == [["+I Oslo 5"], ["+I Rome 3"]]
    assert emitted(dry_run(totals, 2, mode="upsert", format="json")) == emitted(tree)


def test_values_of_python(spark: SparkSession, inbox: Path) -> None:
    columns = "d DECIMAL(10, 2), x DOUBLE, at DATE, b BINARY, l ARRAY<INT>, s STRUCT<k: STRING>"
    df = from_changelog(spark.readStream.schema(columns).json(str(inbox)))
    row = (Decimal("1.50"), math.inf, datetime.date(2026, 1, 2), b"ab", [1, None], {"k": "{x}"})
    tree = dry_run(df, {"1": [("+I", *row)]}, format="json")
    assert tree["emitted"][0][0].split(" ", 4)[:4] == ["+I", "1.50", "Infinity", "2026-01-02"]
    assert "[1, NULL]" in tree["emitted"][0][0]
    assert "{x}" in tree["emitted"][0][0]


def test_a_source_that_is_not_there(totals: DataFrame) -> None:
    with pytest.raises(AnalysisException) as error:
        dry_run(totals, {"trips": ["+I 1 Oslo 5"]})
    assert error.value.getCondition() == "CHANGELOG_DRY_RUN_SOURCE_NOT_FOUND"
