# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`explain` and EXPLAIN CHANGELOG give equal plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_changelog import explain, from_changelog, to_changelog


@pytest.fixture
def cascade(spark: SparkSession, feed: Callable[[str], Path]) -> DataFrame:
    raw = spark.readStream.schema("op STRING, word STRING").json(str(feed("")))
    counts = from_changelog(raw, change_type="op").groupBy("word").agg(F.count("*").alias("cnt"))
    return counts.groupBy("cnt").agg(F.count("*").alias("freq"))


def test_the_text_is_printed_and_returned(
    cascade: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    text = explain(cascade)
    assert capsys.readouterr().out.strip() == text.strip()
    assert "[I,UB,UA,D]" in text
    assert "key=(cnt)" in text


def test_sql_says_the_same(spark: SparkSession, cascade: DataFrame) -> None:
    cascade.createOrReplaceTempView("cascade")
    query = "SELECT * FROM to_changelog(TABLE(cascade), mode => 'upsert')"
    rows = spark.sql(f"EXPLAIN CHANGELOG {query}").collect()
    assert len(rows) == 1
    without_ids = [line.split("#")[0] for line in rows[0][0].splitlines()]
    expected = explain(cascade, mode="upsert")
    assert without_ids == [line.split("#")[0] for line in expected.splitlines()]


def test_the_structured_form(cascade: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    tree = explain(cascade, format="json")
    assert capsys.readouterr().out == ""
    nodes = [tree]
    for node in nodes:
        assert {"node", "detail", "mode", "requires", "upsertKeys", "strategy"} <= node.keys()
        assert {"state", "reasons", "children"} <= node.keys()
        nodes.extend(node["children"])
    aggregates = [node for node in nodes if "Aggregate" in node["node"]]
    # No node above reads the word, so the inner aggregate does not emit its key.
    assert [node["upsertKeys"] for node in aggregates] == [[["cnt"]], []]
    assert [node["requires"] for node in aggregates] == ["BEFORE_AND_AFTER"] * 2
    assert all(node["state"][0]["boundedBy"] for node in aggregates)


def test_upsert_mode_needs_no_update_before(cascade: DataFrame) -> None:
    assert explain(cascade, mode="upsert", format="json")["mode"] == ["I", "UA", "D"]


def test_spark_explain_has_the_annotations(
    cascade: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    to_changelog(cascade).explain()
    assert "[I,UB,UA,D]" in capsys.readouterr().out


def test_names_that_pyspark_makes_up_are_not_shown(
    spark: SparkSession, feed: Callable[[str], Path]
) -> None:
    raw = spark.readStream.schema("op STRING, id INT, word STRING").json(str(feed("")))
    left, right = from_changelog(raw, "op", key="id"), from_changelog(raw, "op", key="id")
    for join in left.join(right, "id"), left.join(right, left.id == right.id, "left"):
        text = explain(join)
        assert "(id = id)" in text
        assert "_pyspark" not in text
