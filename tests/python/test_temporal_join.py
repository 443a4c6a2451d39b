# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Temporal joins and lookup joins with data frames."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_changelog import explain, from_changelog, lookup, to_changelog

Rows = Sequence[Sequence[Any]]

ORDERS: Sequence[Rows] = [
    [("+I", 1, "EUR", 5), ("+I", 2, "EUR", 1), ("+I", 3, "USD", 7)],
    [("+I", 4, "EUR", 9), ("-D", 1, "EUR", 5)],
    [("+I", 5, "USD", 3), ("-U", 2, "EUR", 1), ("+U", 2, "EUR", 6)],
]
RATES: Sequence[Rows] = [
    [("+I", "EUR", 3, 110)],
    [("+I", "EUR", 4, 111), ("+I", "USD", 7, 90)],
    [("-D", "EUR", 4, 111), ("+I", "EUR", 8, 112)],
]
FEEDS = {
    "orders": ("op STRING, id INT, currency STRING, at INT", ORDERS),
    "rates": ("op STRING, currency STRING, since INT, rate INT", RATES),
}


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """Write one file of JSON per table and batch."""
    for name, (ddl, batches) in FEEDS.items():
        (tmp_path / name).mkdir()
        columns = [column.split()[0] for column in ddl.split(", ")]
        for number, rows in enumerate(batches):
            lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
            path = tmp_path / name / f"{number}.json"
            path.write_text("\n".join(lines))
            # A file source reads files from the oldest to the newest.
            os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))
    return tmp_path


def tables(spark: SparkSession, inbox: Path, streams: bool) -> list[DataFrame]:
    reader = spark.readStream.option("maxFilesPerTrigger", 1) if streams else spark.read
    return [
        from_changelog(reader.schema(ddl).json(str(inbox / name)), change_type="op")
        for name, (ddl, _) in FEEDS.items()
    ]


def kept(changes: DataFrame, folder: Path) -> Counter[tuple[Any, ...]]:
    """Run a query over the available input, in several batches, and return the result."""
    rows: Counter[tuple[Any, ...]] = Counter()

    def replay(batch: DataFrame, _: int) -> None:
        for *values, kind in batch.collect():
            rows[tuple(values)] += 1 if kind in {"insert", "update_postimage"} else -1
        assert min(rows.values(), default=0) >= 0

    query = (
        changes.writeStream.foreachBatch(replay)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return +rows


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
def test_join_as_of(spark: SparkSession, inbox: Path, direction: str, how: str) -> None:
    def joined(streams: bool) -> DataFrame:
        orders, rates = tables(spark, inbox, streams)
        as_of = orders._joinAsOf(
            rates,
            leftAsOfColumn=orders["at"],
            rightAsOfColumn=rates["since"],
            on=orders["currency"] == rates["currency"],
            how=how,
            direction=direction,
            tolerance=F.lit(3),
        )
        return as_of.select("id", "at", "since", "rate")

    changes = to_changelog(joined(streams=True))
    assert kept(changes, inbox) == Counter(map(tuple, joined(streams=False).collect()))


def test_join_as_of_keeps_versions_by_time(spark: SparkSession, inbox: Path) -> None:
    orders, rates = tables(spark, inbox, streams=True)
    joined = orders._joinAsOf(rates, orders["at"], rates["since"], on="currency")
    line = next(text for text in explain(joined).splitlines() if "TemporalJoin" in text)
    assert line.startswith("+- ChangelogTemporalJoin Inner")
    assert "last (since <= at)" in line


def test_a_lookup_does_not_follow_the_table(spark: SparkSession, inbox: Path) -> None:
    _, rates = tables(spark, inbox, streams=True)
    raw = spark.readStream.option("maxFilesPerTrigger", 1).schema(FEEDS["orders"][0])
    came = from_changelog(raw.json(str(inbox / "orders")).where("op LIKE '+%'").drop("op"))
    now = rates.groupBy("currency").agg(F.max("rate").alias("rate"))
    joined = came.join(lookup(now), "currency", "left").select("id", "at", "rate")
    assert kept(to_changelog(joined, mode="append"), inbox) == Counter(
        [(1, 5, 110), (2, 1, 110), (3, 7, None), (4, 9, 111), (5, 3, 90), (2, 6, 112)]
    )
