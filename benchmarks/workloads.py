# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""What is measured: a query over a generated stream, in our words and in stock Spark's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import spark_changelog as changelog


@dataclass(frozen=True)
class Workload:
    """A query that ours and, where it can, stock Spark keep up to date.

    Parameters
    ----------
    name : str
        What it is called on the command line and in results.
    generate : callable
        Writes the input: one Parquet file per batch into the given folder.
    query : callable
        The query over the input table; used by both sides, and as a batch for the check.
    read : callable
        Turns the raw stream into the table the query is over, for our side.
    mode : str
        What our side asks ``to_changelog`` for.
    key : list of str
        The key of the result, for ``mode="upsert"``.
    stock : bool
        Whether stock Spark can express it.
    stock_mode : str
        The output mode stock Spark runs it in.
    settings : dict
        Further ways for our side to run it: a name, with the settings that differ.
    """

    name: str
    generate: Callable[[SparkSession, Path, int, int], None]
    query: Callable[[DataFrame], DataFrame]
    read: Callable[[DataFrame], DataFrame] = lambda raw: raw
    mode: str = "upsert"
    key: tuple[str, ...] = ("key",)
    stock: bool = True
    stock_mode: str = "update"
    settings: dict[str, dict[str, str]] = field(default_factory=dict)

    def ours(self, raw: DataFrame) -> DataFrame:
        """Give the changes of the query over a raw stream."""
        key = list(self.key) or None
        return changelog.to_changelog(self.query(self.read(raw)), self.mode, key=key)


def write_batches(frame: DataFrame, folder: Path, batches: int) -> None:
    """Write one file per batch, batch by batch, so that a stream reads them in order."""
    frame.persist()
    for number in range(batches):
        part = frame.where(F.col("batch") == number).drop("batch").coalesce(2)
        part.write.mode("append").parquet(str(folder))
    frame.unpersist()


def _random_keys(spark: SparkSession, folder: Path, rows: int, batches: int) -> None:
    frame = spark.range(rows).select(
        F.pmod(F.xxhash64("id"), F.lit(rows // 5)).alias("key"),
        (F.col("id") % 1000).alias("value"),
        (F.col("id") * batches / rows).cast("int").alias("batch"),
    )
    write_batches(frame, folder, batches)


def _sum_count(table: DataFrame) -> DataFrame:
    return table.groupBy("key").agg(F.sum("value").alias("total"), F.count("*").alias("n"))


def _count_of_counts(table: DataFrame) -> DataFrame:
    counts = table.groupBy("key").agg(F.count("*").alias("n"))
    return counts.groupBy("n").agg(F.count("*").alias("groups"))


def _orders(spark: SparkSession, folder: Path, rows: int, batches: int) -> None:
    """Each order is inserted, then updated in a later batch, then, one in five, deleted."""
    orders = spark.range(rows // 4).select(
        F.col("id"), F.pmod(F.xxhash64("id"), F.lit(rows // 100)).alias("key")
    )
    first = (F.col("id") * 4 * batches / rows).cast("int")
    events = [
        ("insert", "id % 1000", first),
        ("update_preimage", "id % 1000", first + 1),
        ("update_postimage", "id % 777", first + 1),
        ("delete", "id % 777", first + 2),
    ]
    frames = [
        orders.where(F.lit(kind != "delete") | (F.col("id") % 5 == 0)).select(
            "key", F.expr(value).alias("value"), F.lit(kind).alias("op"), batch.alias("batch")
        )
        for kind, value, batch in events
    ]
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.unionAll(other)
    write_batches(frame, folder, batches)


def _from_orders(raw: DataFrame) -> DataFrame:
    return changelog.from_changelog(raw, change_type="op")


def _min_max(table: DataFrame) -> DataFrame:
    return table.groupBy("key").agg(
        F.count("*").alias("n"), F.min("value").alias("low"), F.max("value").alias("high")
    )


def _distinct_counts(table: DataFrame) -> DataFrame:
    return table.groupBy("key").agg(F.countDistinct("value").alias("n"))


def _visits(keys: int) -> Callable[[SparkSession, Path, int, int], None]:
    """Rows of few keys with many values, a fifth of them new at any time."""

    def generate(spark: SparkSession, folder: Path, rows: int, batches: int) -> None:
        frame = spark.range(rows).select(
            F.pmod(F.xxhash64("id", F.lit(1)), F.lit(keys)).alias("key"),
            F.pmod(F.xxhash64("id"), F.lit(rows // 5)).alias("value"),
            (F.col("id") * batches / rows).cast("int").alias("batch"),
        )
        write_batches(frame, folder, batches)

    return generate


def _lines(hot: float) -> Callable[[SparkSession, Path, int, int], None]:
    """Orders with four lines each; a share of all lines is of one order."""

    def generate(spark: SparkSession, folder: Path, rows: int, batches: int) -> None:
        orders = rows // 5
        key = F.when(F.rand(7) < hot, F.lit(0)).otherwise(F.pmod(F.xxhash64("id"), F.lit(orders)))
        frame = spark.range(rows).select(
            F.when(F.col("id") % 5 == 0, F.col("id") / 5)
            .otherwise(key)
            .cast("long")
            .alias("key"),
            (F.col("id") % 1000).alias("value"),
            (F.col("id") % 5 == 0).alias("is_order"),
            (F.col("id") * batches / rows).cast("int").alias("batch"),
        )
        write_batches(frame, folder, batches)

    return generate


def _join_lines(kind: str) -> Callable[[DataFrame], DataFrame]:
    def query(table: DataFrame) -> DataFrame:
        orders = table.where("is_order").select("key", F.col("value").alias("customer"))
        lines = table.where("NOT is_order").select("key", "value")
        return lines.join(orders, "key", kind)

    return query


def _bids(spark: SparkSession, folder: Path, rows: int, batches: int) -> None:
    """Bids for auctions, 46 each."""
    frame = spark.range(rows).select(
        F.pmod(F.xxhash64("id"), F.lit(max(1, rows // 46))).alias("key"),
        F.pmod(F.xxhash64("id", F.lit(1)), F.lit(1_000_000)).alias("price"),
        F.col("id"),
        (F.col("id") * batches / rows).cast("int").alias("batch"),
    )
    write_batches(frame, folder, batches)


def _from_bids(raw: DataFrame) -> DataFrame:
    return changelog.from_changelog(raw, key=["id"])


def _best(order: str, last: int, *read: str) -> Callable[[DataFrame], DataFrame]:
    """Rank the rows of each key and keep those up to a rank."""

    def query(table: DataFrame) -> DataFrame:
        best = Window.partitionBy("key").orderBy(F.desc(order), "id")
        ranked = table.withColumn("place", F.row_number().over(best))
        return ranked.where(F.col("place") <= last).select("key", "id", "price", *read)

    return query


_SPLIT = {"split": {"spark.sql.changelog.aggregate.distinctSplit.enabled": "true"}}

ALL = [
    Workload("sum_count", _random_keys, _sum_count),
    Workload("count_of_counts", _random_keys, _count_of_counts, key=("n",), stock=False),
    Workload("retracting_sum_count", _orders, _sum_count, read=_from_orders, stock=False),
    Workload("distinct", _visits(10_000), _distinct_counts, stock=False, settings=_SPLIT),
    Workload("distinct_hot", _visits(1), _distinct_counts, stock=False, settings=_SPLIT),
    Workload("retracting_min_max", _orders, _min_max, read=_from_orders, stock=False),
    Workload("join", _lines(0), _join_lines("inner"), mode="append", key=(), stock_mode="append"),
    Workload(
        "join_hot", _lines(0.2), _join_lines("inner"), mode="append", key=(), stock_mode="append"
    ),
    Workload("top_10", _bids, _best("price", 10), read=_from_bids, key=("id",), stock=False),
    Workload(
        "top_10_numbered", _bids, _best("price", 10, "place"), key=("key", "place"), stock=False
    ),
    Workload("keep_last", _bids, _best("id", 1), stock=False),
    Workload("left_join", _lines(0), _join_lines("left"), mode="retract", key=(), stock=False),
]
