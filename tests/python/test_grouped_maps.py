# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Python functions over groups of rows are called again for changed groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_changelog import explain, from_changelog
from spark_changelog.testing import Batch, Feed, check_query

RIDES = Feed("rides", "id INT, city STRING, fare DOUBLE", key=("id",))
NAMES = Feed("names", "city STRING, name STRING")

BATCHES: list[Batch] = [
    {"rides": ["+I 1 Oslo 5", "+I 2 Oslo 7", "+I 3 Rome NULL", "+I 4 NULL 1"]},
    {"rides": ["-U 1 Oslo 5", "+U 1 Rome 5"], "names": ["+I Oslo NO", "+I Bern CH"]},
    {"names": ["-D Bern CH", "+I Rome IT"], "rides": ["+I 5 Oslo 9", "-D 5 Oslo 9"]},
    {"rides": ["-D 2 Oslo 7", "-D 4 NULL 1", "-D 1 Rome 5", "-D 3 Rome NULL"]},
    {"rides": ["+I 6 Oslo 1"]},
]

# Nested functions are sent to Python workers by value. Workers can't import this module.


def rank_fares(spark: SparkSession) -> DataFrame:
    """Return one row per input row, grouped by a column and an expression."""

    def ranked(rides: pd.DataFrame) -> pd.DataFrame:
        return rides.assign(rank=rides.fare.rank(method="min"))[["id", "city", "fare", "rank"]]

    grouped = spark.table("rides").groupBy("city", F.col("id") % 2)
    return grouped.applyInPandas(ranked, "id INT, city STRING, fare DOUBLE, rank DOUBLE")


def total_fares(spark: SparkSession) -> DataFrame:
    """Return one row for a single group of every row."""

    def total(rides: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"rides": [len(rides)], "total": [rides.fare.sum()]})

    return spark.table("rides").groupBy().applyInPandas(total, "rides INT, total DOUBLE")


def count_in_arrow(spark: SparkSession) -> DataFrame:
    """Return at most one row per group, in Arrow, grouped by an expression."""

    def count(key: tuple[pa.Scalar], rides: pa.Table) -> pa.Table:
        rows = [{"initial": key[0].as_py(), "n": rides.num_rows}] if rides.num_rows > 1 else []
        schema = pa.schema([("initial", pa.string()), ("n", pa.int64())])
        return pa.Table.from_pylist(rows, schema)

    grouped = spark.table("rides").groupBy(F.substring("city", 1, 1))
    return grouped.applyInArrow(count, "initial STRING, n BIGINT")


def name_rides(spark: SparkSession) -> DataFrame:
    """Join two tables by cogrouping."""

    def named(rides: pd.DataFrame, names: pd.DataFrame) -> pd.DataFrame:
        joined = rides.merge(names, on="city", how="outer")
        return joined[["id", "city", "name"]]

    rides, names = spark.table("rides").groupBy("city"), spark.table("names").groupBy("city")
    return rides.cogroup(names).applyInPandas(named, "id DOUBLE, city STRING, name STRING")


def count_both_in_arrow(spark: SparkSession) -> DataFrame:
    """Count the rows of each side of a cogroup, in Arrow."""

    def count(rides: pa.Table, names: pa.Table) -> pa.Table:
        return pa.table({"rides": [rides.num_rows], "names": [names.num_rows]})

    rides, names = spark.table("rides").groupBy("city"), spark.table("names").groupBy("city")
    return rides.cogroup(names).applyInArrow(count, "rides BIGINT, names BIGINT")


VIEWS: dict[str, Callable[[SparkSession], DataFrame]] = {
    "rows": rank_fares,
    "all rows": total_fares,
    "arrow": count_in_arrow,
    "two tables": name_rides,
    "two tables, arrow": count_both_in_arrow,
}


@pytest.mark.parametrize("name", VIEWS)
def test_changing_rows(spark: SparkSession, name: str) -> None:
    def query(rides: DataFrame, _names: DataFrame) -> DataFrame:
        return VIEWS[name](rides.sparkSession)

    emitted = check_query(spark, query, [RIDES, NAMES], BATCHES)
    if name == "rows":
        changes = sorted((change.kind, change.values) for change in emitted[1])
        # only the differences from the previous result
        assert changes == [("+I", (1, "Rome", 5.0, 1.0)), ("-D", (1, "Oslo", 5.0, 1.0))]


def test_an_aggregate_of_results_with_restarts(spark: SparkSession) -> None:
    def prepare(session: SparkSession) -> None:
        rank_fares(session).createOrReplaceTempView("mapped")

    sql = "SELECT city, max(rank) AS most, count(*) AS n FROM mapped GROUP BY city"
    check_query(spark, sql, [RIDES, NAMES], BATCHES, restart=True, prepare=prepare)


def test_explain_names_the_function(spark: SparkSession, tmp_path: Path) -> None:
    def first(rides: pd.DataFrame) -> pd.DataFrame:
        return rides.head(1)

    raw = spark.readStream.schema("id INT, city STRING").json(str(tmp_path))
    mapped = from_changelog(raw).groupBy("city").applyInPandas(first, "id INT, city STRING")
    line = next(line for line in explain(mapped).splitlines() if "FlatMapGroups" in line)
    assert line == (
        "+- ChangelogFlatMapGroupsInPandas [city] first  [I,UB,UA,D]  "
        "strategy=recompute touched partitions  state: rows: (city, row) → count, unbounded"
    )
