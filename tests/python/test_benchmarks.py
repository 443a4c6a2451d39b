# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The benchmarks measure correctly, and report wrong results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import data
import growth_side
import growth_time
import report
import run
import sinks
import sinks_side
import spark_side
from measuring import number
from workloads import ALL, BY_NAME

EVENTS = 2_000
FILES = 4


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("events")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "FILES", FILES)
        patch.setattr(spark_side, "FILES", FILES)
        data.generate(spark, folder, EVENTS)
        yield folder


def test_of_fifty_events_46_are_bids_and_three_auctions(
    spark: SparkSession, events: Path
) -> None:
    rows = {
        name: spark.read.parquet(str(events / name)).count()
        for name in ("person", "auction", "bid")
    }
    assert rows == {"person": EVENTS / 50, "auction": EVENTS / 50 * 3, "bid": EVENTS / 50 * 46}


def test_lanes_hold_the_changes_of_all_files(spark: SparkSession, events: Path) -> None:
    files = spark.read.parquet(str(events / "orders"))
    lanes = spark.read.parquet(str(events / "orders_lanes"))
    assert lanes.count() == files.count()
    assert lanes.exceptAll(files.select(lanes.columns)).isEmpty()
    assert {row.op for row in files.select("op").distinct().collect()} == {
        "INSERT",
        "UPDATE_BEFORE",
        "UPDATE_AFTER",
        "DELETE",
    }


@pytest.mark.parametrize("name", ["W8a", "W10"])
def test_the_sum_over_changes_is_that_of_the_final_rows(
    spark: SparkSession, events: Path, name: str
) -> None:
    workload = BY_NAME[name]
    batch = spark_side._batch(spark, workload, events, FILES, False)
    ours = spark_side._ours(spark, workload, events, FILES, False)
    assert batch["count"] > 0
    assert (ours["count"], ours["sum"]) == (batch["count"], batch["sum"])
    assert ours["emitted"] >= ours["count"]
    assert len(ours["batch_seconds"]) == FILES


def test_growth_reports_each_small_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder = growth_side.changing_table(tmp_path, 500, 20, growth_side.SKIPPED + 2)
    found = growth_side._run(spark, "rank", folder, 2)
    assert len(found["durations"]) == 2
    # The state has rows at the end, since inserts and deletes are equal in number.
    assert found["state_rows"] > 0
    assert found["shuffle_bytes_per_row"] > 0


def test_as_many_rows_expire_as_come(spark: SparkSession, tmp_path: Path) -> None:
    batches = growth_side.SKIPPED + 8
    folder = growth_time.timed_table(tmp_path, 2_000, 1_000, batches)
    found = growth_side._run(spark, "window", folder, 2)
    assert len(found["durations"]) == 8
    # The watermark is one batch behind, so the state has more rows than the history.
    assert found["state_rows"] == 4_000


def test_what_a_sink_keeps_is_compared_with_batch_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = growth_side.changing_table(tmp_path, 500, 20, 2)
    task = sinks_side.Task("memory", "kept", "", 500, 20, 2, "", {}, "")
    found = sinks_side._keep(spark, task, "kept", folder)
    assert found["right"]
    assert len(found["batches"]) == 2
    assert not sinks_side._is_right(spark, folder, spark.table("kept").where("id <> 7"))


def test_a_sink_costs_what_is_above_noop() -> None:
    def result(sink: str, build: str, seconds: float) -> dict[str, Any]:
        found = {
            "history": 9.0,
            "batches": [seconds],
            "shuffled_bytes": 0,
            "cpu": 1.0,
            "right": True,
        }
        return {"sink": sink, "build": build, **found}

    runs = [
        result("noop", "before", 1.0),
        result("noop", "ours", 1.0),
        result("jdbc", "before", 4.0),
        result("jdbc", "ours", 2.0),
    ]
    about = dict.fromkeys(("machine", "commit", "memory", "started", "repeat"), "")
    table = sinks.render({**about, "rows": 1, "changes": 1, "batches": 1}, runs).splitlines()
    assert table[-2].split()[4:8] == ["4.00", "2.00", "3.00", "3.00"]


def test_wrong_results_are_named() -> None:
    def result(contestant: str, total: int) -> dict[str, Any]:
        found = {"seconds": 1.0, "count": 2, "sum": total, "emitted": 3, "batch_seconds": [0.5]}
        return {"workload": "W1", "contestant": contestant, "turn": 0, **found}

    runs = [
        result("batch", 5),
        result("ours", 5),
        result("flink-heap", 6),
        result("stock", 7),
        {"workload": "W1", "contestant": "flink-rocksdb", "turn": 0, "error": "exit code 1"},
    ]
    assert [one["contestant"] for one in report.wrong(runs)] == ["flink-heap"]
    about = dict.fromkeys(("machine", "commit", "memory", "started", "repeat", "master"), "")
    table = report.render({**about, "events": 1, "warm": 1, "warm_runs": 1, "batches": 1}, runs)
    marked = {line.split()[1] for line in table.splitlines() if "WRONG" in line}
    assert marked == {"flink-heap", "stock"}
    assert "exit code 1" in table


def test_ratios_take_the_best_of_flinks_configurations() -> None:
    medians = {
        ("W1", "ours"): 2.0,
        ("W1", "flink-heap"): 8.0,
        ("W1", "flink-heap-mini"): 4.0,
        ("W2", "ours"): 1.0,
        ("W2", "flink-heap"): 8.0,
    }
    assert report._ratios(medians)[-2].split() == ["geometric", "mean", "4.00"]


def test_stock_takes_part_where_it_can_express_the_query() -> None:
    able = [workload.name for workload in ALL if run.takes_part("stock", workload)]
    assert able == ["W0", "W1", "W2", "W4", "W4j", "W4h", "W4e", "W7"]


def test_numbers_have_units() -> None:
    assert [number(text) for text in ("50", "200k", "5M")] == [50, 200_000, 5_000_000]
