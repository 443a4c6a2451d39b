# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""A changed query continues with the state of the stopped query."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_changelog import evolve, from_changelog, rescale, to_changelog

COLUMNS = "_op STRING, id INT, city STRING, fare INT"


class Rides:
    """A folder of changes, a query over the changes, and the table of the emitted changes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.rows: Counter[tuple[object, ...]] = Counter()
        self.batches: list[list[tuple[object, ...]]] = []
        (folder / "rides").mkdir()

    def arrive(self, name: str, *changes: str) -> None:
        (self.folder / "rides" / f"{name}.csv").write_text("\n".join(changes))

    def table(self) -> DataFrame:
        rides = self.spark.readStream.schema(COLUMNS).csv(str(self.folder / "rides"))
        return from_changelog(rides, change_type="_op")

    def run(self, query: DataFrame, checkpoint: str) -> None:
        def fold(batch: DataFrame, _: int) -> None:
            changes = [tuple(row) for row in batch.collect()]
            self.batches.append(changes)
            for *row, kind in changes:
                self.rows[tuple(row)] += -1 if kind in ("delete", "update_preimage") else 1

        stream = to_changelog(query).writeStream.foreachBatch(fold)
        started = stream.option("checkpointLocation", self.path(checkpoint)).start()
        started.processAllAvailable()
        started.stop()

    def path(self, checkpoint: str) -> str:
        return str(self.folder / checkpoint)

    def held(self) -> set[tuple[object, ...]]:
        return {row for row, count in self.rows.items() if count}


@pytest.fixture
def rides(spark: SparkSession, tmp_path: Path) -> Rides:
    return Rides(spark, tmp_path)


def test_a_target_gets_what_differs(spark: SparkSession, rides: Rides) -> None:
    totals = "SELECT city, sum(fare) AS total FROM {rides} GROUP BY city"
    rides.arrive("1", "insert,1,Oslo,5", "insert,2,Rome,7", "insert,3,Bari,1")
    rides.run(spark.sql(totals, rides=rides.table()), "first")
    large = spark.sql(f"{totals} HAVING sum(fare) > 4", rides=rides.table())
    fates = evolve(to_changelog(large), rides.path("first")).collect()
    assert [row.state for row in fates] == ["kept"]
    assert not Path(rides.path("second")).exists()

    target = spark.createDataFrame(sorted(rides.held(), key=str), "city STRING, total BIGINT")
    evolve(to_changelog(large), rides.path("first"), rides.path("second"), target)
    rides.run(large, "second")
    assert rides.batches[-1] == [("Bari", 1, "delete")]
    rides.arrive("2", "insert,4,Bari,9", "delete,1,Oslo,5")
    rides.run(large, "second")
    assert rides.held() == {("Rome", 7), ("Bari", 10)}


def test_what_is_not_possible_is_told(spark: SparkSession, rides: Rides) -> None:
    rides.arrive("1", "insert,1,Oslo,5")
    query = rides.table().groupBy("city").count()
    rides.run(query, "first")
    with pytest.raises(PySparkException, match="CHANGELOG_CHECKPOINT_EXISTS"):
        evolve(to_changelog(query), rides.path("first"), rides.path("rides"))
    with pytest.raises(PySparkException, match=r"CHANGELOG_EVOLUTION_NOT_POSSIBLE.*no batch"):
        evolve(to_changelog(query), rides.path("none"), rides.path("second"))
    with pytest.raises(PySparkException, match="does not call to_changelog"):
        evolve(spark.range(1), rides.path("first"))


def test_a_query_goes_on_in_other_partitions(spark: SparkSession, rides: Rides) -> None:
    totals = rides.table().groupBy("city").sum("fare")
    rides.arrive("1", "insert,1,Oslo,5", "insert,2,Rome,7", "insert,3,Bari,1")
    rides.run(totals, "first")
    (spread,) = rescale(rides.path("first"), rides.path("second"), 5).collect()
    assert (spread.partitions, spread.entries) == (5, 3)
    rides.arrive("2", "insert,4,Bari,9", "delete,1,Oslo,5")
    rides.run(totals, "second")
    assert rides.held() == {("Rome", 7), ("Bari", 10)}
    rescale(rides.path("second"), rides.path("third"), 3, spark)
    rides.arrive("3", "update_preimage,2,Rome,7", "update_postimage,2,Oslo,7")
    rides.run(totals, "third")
    assert rides.held() == {("Oslo", 7), ("Bari", 10)}
    with pytest.raises(
        PySparkException, match=r"CHANGELOG_RESCALING_NOT_POSSIBLE.*already has as many"
    ):
        rescale(rides.path("third"), rides.path("fourth"), 3)
    with pytest.raises(PySparkException, match="CHANGELOG_CHECKPOINT_EXISTS"):
        rescale(rides.path("third"), rides.path("second"), 4)
