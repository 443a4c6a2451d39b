# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Functions over whole partitions fail over changing rows, and the error names a replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udtf

import spark_changelog as changelog

SCHEMA = "id INT, fare INT"
INSTEAD = "applyInPandas, applyInArrow or mapGroups"


@udtf(returnType="total INT")  # type: ignore[arg-type]
class Total:
    """Adds the values of a partition."""

    def __init__(self) -> None:
        self.total = 0

    def eval(self, row: Any) -> None:
        self.total += row["fare"]

    def terminate(self) -> Iterator[tuple[int]]:
        yield (self.total,)


def pandas(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    yield from batches


def arrow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


@pytest.fixture
def rides(spark: SparkSession, feed: Callable[[str], Any]) -> DataFrame:
    folder = feed('{"op": "+I", "id": 1, "fare": 5}')
    raw = spark.readStream.schema(f"op STRING, {SCHEMA}").json(str(folder))
    return changelog.from_changelog(raw, change_type="op", key="id")


def test_functions_over_partitions(rides: DataFrame) -> None:
    functions = {
        "MapInPandas": rides.mapInPandas(pandas, SCHEMA),
        "MapInArrow": rides.mapInArrow(arrow, SCHEMA),
    }
    for name, query in functions.items():
        refused = f"(?s)CHANGELOG_CONSUMER_CANNOT_TAKE_CHANGES.*{name}.*{INSTEAD}"
        with pytest.raises(Exception, match=refused):
            changelog.to_changelog(query).writeStream.format("noop").start()
        with pytest.raises(Exception, match=refused):
            changelog.explain(query)


@pytest.mark.parametrize("partitions", ["PARTITION BY fare", "WITH SINGLE PARTITION", ""])
def test_a_table_function_over_a_table(
    spark: SparkSession, rides: DataFrame, partitions: str
) -> None:
    deterministic = Total.asDeterministic()  # type: ignore[attr-defined]
    spark.udtf.register("add_up", deterministic)
    rides.createOrReplaceTempView("rides")
    query = spark.sql(f"SELECT * FROM add_up(TABLE(rides) {partitions})")
    with pytest.raises(Exception, match=f"(?s)CHANGELOG_CONSUMER_CANNOT_TAKE.*{INSTEAD}"):
        changelog.to_changelog(query).writeStream.format("noop").start()


def test_the_change_type_is_called_as_one_says(rides: DataFrame) -> None:
    named = rides.withColumnRenamed("fare", "_change_type")
    changes = changelog.to_changelog(named, change_type="kind")
    assert changes.columns == ["id", "_change_type", "kind"]
    with pytest.raises(Exception, match="CHANGELOG_COLUMN_RESERVED"):
        changelog.to_changelog(named)
