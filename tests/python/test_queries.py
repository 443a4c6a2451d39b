# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Maintained queries in Python equal batch Spark's result after every batch."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from share import runs_of
from spark_changelog.functions import Mode
from spark_changelog.testing import Batch, Feed, check_query

RIDES = Feed("rides", "id INT, city STRING, fare INT", key=("id",))
SEEN = Feed("seen", "word STRING, score DOUBLE")

BATCHES: list[Batch] = [
    {"rides": ["+I 1 Oslo 5", "+I 2 Oslo 7", "+I 3 Rome NULL", "+I 4 NULL 1"]},
    {"rides": ["-U 1 Oslo 5", "+U 1 Rome 5"]},
    {},
    {"rides": ["-D 2 Oslo 7", "-D 4 NULL 1", "+I 5 Oslo 9", "-D 5 Oslo 9"]},
    {"rides": ["-D 1 Rome 5", "-D 3 Rome NULL", "+I 1 Oslo 2"]},
]
PER_CITY = """
    SELECT city, count(*) AS n, count(fare) AS fares, sum(fare) AS total, avg(fare) AS mean,
           min(fare) AS lowest, max(fare) AS highest
    FROM rides GROUP BY city
"""
QUERIES = {
    "aggregate": PER_CITY,
    "cascade": f"SELECT n, count(*) AS cities FROM ({PER_CITY}) GROUP BY n",
    "global": "SELECT count(*) AS n, sum(fare) AS total FROM rides",
    "having": "SELECT city, count(*) AS n FROM rides GROUP BY city HAVING count(*) > 1",
    "filter": "SELECT id, upper(city) AS city FROM rides WHERE fare > 4",
    "union": "SELECT city FROM rides UNION ALL SELECT city FROM rides WHERE fare > 4",
    "best": """
        SELECT id, city, fare FROM (
            SELECT *, row_number() OVER (PARTITION BY city ORDER BY fare DESC, id) AS place
            FROM rides
        ) WHERE place <= 2
    """,
    "limit": "SELECT id, fare FROM rides ORDER BY fare DESC, id LIMIT 2",
    "grouping sets": "SELECT city, fare, count(*) AS n FROM rides GROUP BY CUBE (city, fare)",
}
UPSERT_KEYS = {
    "aggregate": ["city"],
    "cascade": ["n"],
    "having": ["city"],
    "filter": ["id"],
    "best": ["id"],
}


@pytest.mark.parametrize(("name", "restart"), runs_of(QUERIES))
def test_every_change_is_emitted(spark: SparkSession, name: str, restart: bool) -> None:
    check_query(spark, QUERIES[name], [RIDES], BATCHES, restart=restart)


@pytest.mark.parametrize("name", UPSERT_KEYS)
def test_upserts_by_key(spark: SparkSession, name: str) -> None:
    check_query(spark, QUERIES[name], [RIDES], BATCHES, mode="upsert", key=UPSERT_KEYS[name])


@pytest.mark.parametrize("mode", ["retract", "upsert"])
def test_rows_without_before_images(spark: SparkSession, mode: Mode) -> None:
    upserted = Feed("rides", RIDES.columns, key=("id",), input="upsert")
    batches: list[Batch] = [
        {"rides": ["+I 1 Oslo 5", "+I 2 Rome 7"]},
        {"rides": ["+U 1 Rome 5", "+U 2 Rome 7"]},
        {"rides": ["-D 1 stale 0", "+I 3 Bern 1"]},
    ]
    key = ["city"] if mode == "upsert" else None
    check_query(spark, PER_CITY, [upserted], batches, mode=mode, key=key)


def test_an_unchanged_result_emits_nothing(spark: SparkSession) -> None:
    emitted = check_query(
        spark,
        "SELECT city, max(fare) AS highest FROM rides GROUP BY city",
        [RIDES],
        [{"rides": ["+I 1 Oslo 5", "+I 2 Oslo 7"]}, {"rides": ["-U 1 Oslo 5", "+U 1 Oslo 6"]}],
    )
    assert [len(changes) for changes in emitted] == [1, 0]


def test_floating_point_comes_back_from_nan(spark: SparkSession) -> None:
    check_query(
        spark,
        "SELECT word, sum(score) AS total, min(score) AS lowest FROM seen GROUP BY word",
        [SEEN],
        [
            {"seen": ["+I a 0.1", "+I a NaN", "+I b -0.0"]},
            {"seen": ["-D a NaN", "+I b 0.0"]},
            {"seen": ["+I a 0.1", "+I a 0.1", "-D b -0.0"]},
        ],
    )


def random_batches(seed: int, count: int = 6) -> list[Batch]:
    """Return valid changes of `RIDES`: moves between groups, NULLs, deletes and re-inserts."""
    chance = random.Random(seed)
    rows: dict[int, str] = {}
    batches: list[Batch] = []
    for _ in range(count):
        changes: list[str] = []
        for _ in range(chance.choice([0, 1, 3, 10])):
            key = chance.randrange(6)
            old = rows.pop(key, None)
            new = None if chance.random() < 0.3 else _random_row(chance, key)
            changes += [f"{'-U' if new else '-D'} {old}"] if old else []
            changes += [f"{'+U' if old else '+I'} {new}"] if new else []
            if new:
                rows[key] = new
        batches.append({"rides": changes})
    return batches


def _random_row(chance: random.Random, key: int) -> str:
    return f"{key} {chance.choice(['Oslo', 'Rome', 'NULL'])} {chance.choice(['1', '2', 'NULL'])}"


@pytest.mark.parametrize("seed", range(3))
def test_random_changes(spark: SparkSession, seed: int) -> None:
    check_query(spark, QUERIES["cascade"], [RIDES], random_batches(seed), restart=seed % 2 == 0)
