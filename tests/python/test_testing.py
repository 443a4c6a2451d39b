# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The test kit accepts correct queries, and reports wrong changes and wrong inputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import share
from processes import ROOT
from spark_changelog.testing import (
    Change,
    ChangelogError,
    Feed,
    Scenario,
    _run,
    check,
    check_query,
)
from spark_changelog.testing._replay import Replay
from spark_changelog.testing._run import Way, rounded

SCENARIOS = sorted((ROOT / "tests" / "sql" / "scenarios").glob("*.sql"))
# Scenarios with unmatched retractions: the engine tolerates them, the test kit rejects the input.
REFUSED = {
    "C01_inner_join_without_keys",
    "K02_unknown_row_with_known_order",
    "K09_left_join_of_many",
}

RIDES = Feed("rides", "city STRING, fare INT")
TOTALS = """
    feed rides(city STRING, fare INT)
    query SELECT city, sum(fare) AS total FROM rides GROUP BY city
    rides +I Oslo 5
    & rides +I Rome 1
    -> +I Oslo 5
    -> +I Rome 1
    rides +I Oslo 2
    -> -U Oslo 5
    -> +U Oslo 7
    rides -D Rome 1
    -> -D Rome 1
"""


# Correct queries


@pytest.mark.parametrize("path", share.of(SCENARIOS, 90, "scenarios"), ids=lambda path: path.stem)
def test_the_scenarios_of_the_engine(spark: SparkSession, path: Path) -> None:
    if path.stem in REFUSED:
        with pytest.raises(ValueError, match="never inserted"):
            check(spark, Scenario.read(path))
    else:
        check(spark, Scenario.read(path), cuts=1, seed=1)


def test_values_of_all_types(spark: SparkSession) -> None:
    columns = "d DECIMAL(10, 2), f DOUBLE, b BOOLEAN, t TIMESTAMP, s STRING, x BINARY"
    emitted = check(
        spark,
        f"""
        feed v({columns}) KEY (d)
        query SELECT d, f, NOT b AS b, t, upper(s) AS s, x, array(s, NULL) AS a FROM v
        v +I 1.5 1e3 true '2026-01-02 03:04:05.000006' 'New York' ab
        -> +I 1.50 1000 false '2026-01-02 03:04:05.000006' 'NEW YORK' ab '[New York, null]'
        v +I 2 NaN NULL NULL '' NULL
        -> +I 2.00 NaN NULL NULL '' NULL '[, null]'
        """,
    )
    row = (Decimal("1.50"), 1000.0, False, datetime(2026, 1, 2, 3, 4, 5, 6), "NEW YORK", b"ab")
    assert emitted[0][0].values == (*row, ("New York", None))


def test_rows_of_python_and_a_function_of_data_frames(spark: SparkSession) -> None:
    def most(words: DataFrame, names: DataFrame) -> DataFrame:
        exploded = words.select("id", F.explode("tags").alias("tag"))
        return exploded.join(names, "tag").groupBy("name").agg(F.count("*").alias("n"))

    words = Feed("words", "id INT, tags ARRAY<STRING>, more MAP<STRING, DOUBLE>", key="id")
    names = Feed("names", "tag STRING, name STRING", key="tag", input="upsert")
    first = ("+I", 1, ["a", "b"], {"x": 0.5})
    emitted = check_query(
        spark,
        most,
        [words, names],
        [
            {"words": [first], "names": [("+I", "a", "A"), "+I b B"]},
            {"words": [("-U", *first[1:]), ("+U", 1, ["b"], None)]},
            {"names": [("+U", "b", None)]},
        ],
        cuts=2,
        seed=3,
    )
    assert [sorted(map(str, changes)) for changes in emitted] == [
        ["+I A 1", "+I B 1"],
        ["-D A 1"],
        ["+I NULL 1", "-D B 1"],
    ]


def test_a_query_that_must_be_refused(spark: SparkSession) -> None:
    text = """
        feed rides(city STRING, fare INT)
        query SELECT city, rand() AS chance FROM rides
        error CHANGELOG_NONDETERMINISTIC_EXPRESSION
    """
    check(spark, text)
    with pytest.raises(ChangelogError, match=r"with OTHER \{\}\nbut fails with CHANGELOG_NON"):
        check(spark, text.replace("CHANGELOG_NONDETERMINISTIC_EXPRESSION", "OTHER"))
    with pytest.raises(ChangelogError, match="but runs"):
        check(spark, text.replace("rand()", "fare"))


# Wrong queries, changes and inputs


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("-> +I Oslo 5", "-> +I Oslo 6", "batch 1 of 3"),
        ("-> -D Rome 1", "", "batch 3 of 3"),
    ],
)
def test_wrong_expectations_fail(
    spark: SparkSession, right: str, wrong: str, message: str
) -> None:
    with pytest.raises(ChangelogError, match=rf"(?s)^{message}.*expected:.*emitted in this"):
        check(spark, TOTALS.replace(right, wrong.replace("\n", "\n    ")), cuts=0)


def test_a_failure_tells_what_came_and_what_was_expected(spark: SparkSession) -> None:
    with pytest.raises(ChangelogError) as raised:
        check(spark, TOTALS.replace("+U Oslo 7", "+U 'New York' NULL"), cuts=0)
    assert str(raised.value).splitlines() == [
        "batch 2 of 3, which brought:",
        "  rides +I Oslo 2",
        "expected:",
        "  -> -U Oslo 5",
        "  -> +U 'New York' NULL",
        "emitted in this batch:",
        "  -> -U Oslo 5",
        "  -> +U Oslo 7",
        "run in batches of 2, 1, 1",
        "query SELECT city, sum(fare) AS total FROM rides GROUP BY city",
    ]


def test_a_delete_that_the_query_never_sees_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = _run._write

    def lose(path: Path, lines: Sequence[str]) -> None:
        write(path, lines if path.name == "rows.json" else [x for x in lines if "-D" not in x])

    monkeypatch.setattr(_run, "_write", lose)
    with pytest.raises(ChangelogError, match="batch 3 of 3") as raised:
        check(spark, "\n".join(x for x in TOTALS.splitlines() if "->" not in x), cuts=0)
    assert "  unexpected Rome 1" in str(raised.value)
    assert "emitted in this batch:\n  nothing" in str(raised.value)


def test_a_query_that_is_another_one_after_a_restart_is_found(spark: SparkSession) -> None:
    starts = []

    def forgetful(rides: DataFrame) -> DataFrame:
        """Depend on the number of starts, so a restart changes the query."""
        starts.append(rides)
        return rides.where(F.col("fare") > -len(starts))

    batches = [{"rides": [("+I", "Oslo", fare)]} for fare in range(2)]
    seed = next(seed for seed in range(100) if Way.of(2, seed).restarts)
    told = rf"(?s)restarted after batch 1 \(seed {seed}\).*CHANGELOG_QUERY_CHANGED"
    with pytest.raises(ChangelogError, match=told):
        check_query(spark, forgetful, [RIDES], batches, cuts=1, seed=seed)


def test_a_cut_that_fails_is_made_again_from_its_seed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = _run._write

    def lose(path: Path, lines: Sequence[str]) -> None:
        """Lose the third row of each batch. Only random batches have three rows."""
        write(path, lines if path.name == "rows.json" else [*lines[:2], *lines[3:]])

    monkeypatch.setattr(_run, "_write", lose)
    batches = [{"rides": [("+I", "Oslo", fare)]} for fare in range(5)]
    query = "SELECT * FROM rides"
    with pytest.raises(ChangelogError) as raised:
        check_query(spark, query, [RIDES], batches, cuts=20, seed=1)
    text = str(raised.value)
    again = re.search(r"seed=(\d+), cuts=1", text)
    assert again is not None
    with pytest.raises(ChangelogError) as raised:
        check_query(spark, query, [RIDES], batches, cuts=1, seed=int(again[1]))
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("feed", "batches", "message"),
    [
        (RIDES, [{"rides": ["-D Oslo 5"]}], "'rides -D Oslo 5' retracts a row never inserted"),
        (RIDES, [{"rides": [("+I", "Oslo")]}], "not a kind and the columns of rides"),
        (RIDES, [{"rides": ["+I Oslo"]}], "does not have the columns of rides: city STRING"),
        (RIDES, [{"rides": ["+J Oslo 5"]}], "does not begin with one of"),
        (RIDES, [{"ride": ["+I Oslo 5"]}], "there is no feed ride"),
        (
            Feed("rides", "city STRING, fare INT", key="city"),
            [{"rides": ["+I Oslo 5", "+I Oslo 6"]}],
            "rides has several rows with the key",
        ),
        (
            Feed("rides", "city STRING, fare INT", insert_only=True),
            [{"rides": ["+I Oslo 5", "-D Oslo 5"]}],
            "rides is INSERT ONLY",
        ),
    ],
)
def test_inputs_that_prove_nothing_are_refused(
    spark: SparkSession, feed: Feed, batches: list[dict[str, list[str]]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_query(spark, "SELECT * FROM rides", [feed], batches)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("feed rides city STRING\nquery SELECT 1", "is not a feed"),
        ("feed rides(city STRING)", "one query"),
        ("feed rides(city STRING)\nquery SELECT 1\nride +I Oslo", "'ride .I Oslo' is not a"),
        ("feed rides(city STRING)\nquery SELECT 1\n-> +I Oslo", "is not a change of a feed"),
        ("feed rides(city STRING)\nquery SELECT 1\nmode sideways", "is none of retract"),
    ],
)
def test_texts_that_are_no_scenarios_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scenario.parse(text)


# The replay of changes, without Spark


def change(kind: str, *values: object) -> Change:
    return Change(kind, values, tuple(map(str, values)))


def test_a_replayed_changelog_gives_the_table() -> None:
    replay = Replay()
    replay.apply([change("+I", "a", 1), change("+I", "b", 1)])
    replay.apply([change("+U", "a", 2), change("-U", "a", 1)])
    replay.apply([change("-D", "b", 1)])
    assert replay.rows == {("a", 2): 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([change("-D", "a", 1)], "'-D a 1' retracts a missing row"),
        ([change("-U", "a", 1), change("+U", "a", 1)], "inserted in the same batch"),
        ([change("+U", "a", 1)], "differ in number"),
    ],
)
def test_a_changelog_that_does_not_fit_is_found(changes: list[Change], message: str) -> None:
    with pytest.raises(ChangelogError, match=message):
        Replay().apply(changes)


def test_upsert_mode_writes_by_key() -> None:
    replay = Replay("upsert", key=(0,))
    replay.apply([change("+I", "a", 1), change("+I", "b", 1)])
    replay.apply([change("+U", "a", 2), change("-D", "b", 9)])
    assert replay.rows == {("a", 2): 1}
    with pytest.raises(ChangelogError, match="mode upsert does not allow"):
        replay.apply([change("-U", "a", 2)])
    with pytest.raises(ChangelogError, match="changes more than once"):
        replay.apply([change("+I", "c", 1), change("+U", "c", 2)])
    with pytest.raises(ChangelogError, match="deletes a missing key"):
        replay.apply([change("-D", "z", 2)])


def test_sums_in_another_order_are_equal() -> None:
    assert rounded(Counter({(0.1 + 0.2,): 1})) == rounded(Counter({(0.3,): 1}))


def test_cuts_are_drawn_from_their_seed() -> None:
    ways = [Way.of(20, seed) for seed in range(100)]
    assert ways == [Way.of(20, seed) for seed in range(100)]
    assert all(list(way.ends) == sorted({*way.ends, 20}) for way in ways)
    assert {len(way.ends) for way in ways} == set(range(1, 9))
    assert any(way.restarts for way in ways)
