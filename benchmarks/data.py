# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Generates the tables of the workloads: auction events, words, and two changelogs.

The events have Nexmark's proportions: 50 events are a new person, three auctions and 46 bids.
Nexmark's hot keys occur too: half of the bids are for 1 % of the auctions, and three quarters by
1 % of the bidders. Every value is computed from the event's number, so equal sizes give equal
rows. A table is 100 files; 5 or 50 batches read 20 or 2 files each.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

FILES = 100
VERSION = 1
_DONE = "done.json"
START = 1_640_995_200_000
SPAN = 4 * 86_400_000

# One payment in ten has no order.
_ORDERS = "id AS order_id, customer, amount"
_PAYMENTS = "id + (id % 10) DIV 9 * 100000000 AS payment_order, amount AS paid"
SIGN = "if(op IN ('INSERT', 'UPDATE_AFTER'), 1, -1)"


def generate(spark: SparkSession, folder: Path, events: int) -> None:
    """Write the tables for a number of events, unless they exist."""
    if is_there(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)
    step = max(1, SPAN // events)
    epochs = events // 50
    tables = {
        "person": _person(spark, epochs, step),
        "auction": _auction(spark, 3 * epochs, step),
        "bid": _bid(spark, 46 * epochs, step),
        "word": _word(spark, events),
    }
    for name, table in tables.items():
        table.write.parquet(str(folder / name))
        _in_order(folder / name)
    for name, changes in {
        "orders": _orders(spark, events, 1, _ORDERS),
        "payments": _orders(spark, events, 2, _PAYMENTS),
    }.items():
        _write_changes(spark, changes, folder, name)
    (folder / _DONE).write_text(json.dumps(VERSION))


def is_there(folder: Path) -> bool:
    """Tell whether this version's tables exist."""
    done = folder / _DONE
    return done.exists() and json.loads(done.read_text()) == VERSION


def _random(number: int, below: str) -> str:
    """Return an expression for the event's random number ``number``."""
    return f"pmod(xxhash64(e, {number}), {below})"


def _index(number: int, size: int) -> str:
    """Return an expression for a random index of an array, counted from 1."""
    return f"CAST({_random(number, str(size))} AS INT) + 1"


def _events(spark: SparkSession, rows: int, per_epoch: int, first: int, step: int) -> DataFrame:
    """Return one row per event of a kind, with a number ``e``, in one partition per file."""
    frame = spark.range(0, rows, 1, FILES)
    return frame.selectExpr(
        f"id DIV {per_epoch} * 50 + {first} + id % {per_epoch} AS e", "id AS number"
    ).selectExpr(
        "*",
        f"{START} + e * {step} AS ts",
        f"timestamp_millis({START} + e * {step}) AS dateTime",
        "e DIV 50 AS person",
        "e DIV 50 * 3 + 2 AS auction",
    )


# Nexmark's ids: mostly a hot id (every hundredth), otherwise a recent id.
def _seller(number: int) -> str:
    return (
        f"if({_random(number, '4')} > 0, person DIV 100 * 100, greatest(person - 1000, 0) "
        f"+ {_random(number + 1, 'least(person, 1000) + 11')})"
    )


def _price(number: int) -> str:
    return f"CAST(round(pow(10, {_random(number, '1000003')} / 1000003 * 6) * 100) AS BIGINT)"


def _person(spark: SparkSession, rows: int, step: int) -> DataFrame:
    return _events(spark, rows, 1, 0, step).selectExpr(
        "number AS id",
        f"concat('person ', {_random(1, '1000')}) AS name",
        "concat('p', number, '@example.com') AS emailAddress",
        f"CAST({_random(2, '10000')} AS STRING) AS creditCard",
        f"element_at(array('Boise', 'Portland', 'Phoenix', 'Kent'), {_index(3, 4)}) AS city",
        f"element_at(array('OR', 'ID', 'CA', 'AZ', 'WA', 'WY'), {_index(4, 6)}) AS state",
        "dateTime",
        "substr(md5(CAST(e AS STRING)), 1, 24) AS extra",
    )


def _auction(spark: SparkSession, rows: int, step: int) -> DataFrame:
    length = f"(1 + {_random(1, '3334')}) * {step}"
    priced = _events(spark, rows, 3, 1, step).selectExpr(
        "*", f"{_price(2)} AS initialBid", f"{length} AS length"
    )
    return priced.selectExpr(
        "number AS id",
        "concat('item ', number) AS itemName",
        "md5(CAST(e AS STRING)) AS description",
        "initialBid",
        f"initialBid + {_price(3)} AS reserve",
        "dateTime",
        "timestamp_millis(ts + length) AS expires",
        f"{_seller(4)} AS seller",
        f"10 + {_random(6, '5')} AS category",
        "substr(md5(CAST(e AS STRING)), 1, 24) AS extra",
        "ts",
        "ts + length AS expires_ts",
    )


def _bid(spark: SparkSession, rows: int, step: int) -> DataFrame:
    auction = (
        f"if({_random(1, '2')} = 0, auction DIV 100 * 100, greatest(auction - 100, 0) "
        f"+ {_random(2, 'least(auction, 100) + 11')})"
    )
    channel = (
        f"if({_random(3, '2')} = 0, element_at(array('Google', 'Facebook', 'Baidu', 'Apple'), "
        f"{_index(4, 4)}), concat('channel-', {_random(5, '10000')}))"
    )
    return _events(spark, rows, 46, 4, step).selectExpr(
        f"{auction} AS auction",
        f"{_seller(6)} + 1 AS bidder",
        f"{_price(8)} AS price",
        f"{channel} AS channel",
        f"concat('https://www.nexmark.com/', substr(md5(CAST(e AS STRING)), 1, 3), "
        f"'/item.htm?query=1', if({_random(9, '2')} = 0, '', "
        f"concat('&channel_id=', {_random(10, '10000')}))) AS url",
        "dateTime",
        "substr(md5(CAST(e AS STRING)), 1, 24) AS extra",
        "e AS id",
        "ts",
        "CAST(ts DIV 86400000 AS INT) AS day",
    )


def _word(spark: SparkSession, rows: int) -> DataFrame:
    word = f"if({_random(1, '2')} = 0, {_random(2, '100')}, {_random(3, str(rows // 20))})"
    return (
        spark.range(0, rows, 1, FILES)
        .withColumnRenamed("id", "e")
        .selectExpr(f"concat('word', {word}) AS word")
    )


def _orders(spark: SparkSession, changes: int, seed: int, columns: str) -> DataFrame:
    """Return the changes to rows: an insert, an update and, for one row in five, a delete.

    The update is in a later file, the delete in a still later file, each after at most two fifths
    of the files. An update has a before and an after image, so a row has 3.2 changes on average.
    """
    rows = int(changes / 3.2)
    later = str(FILES * 2 // 5)
    base = (
        spark.range(0, rows, 1, FILES)
        .selectExpr(
            "id",
            "id AS e",
            f"id * {FILES} DIV {rows} AS came",
        )
        .selectExpr(
            "*",
            f"came + 1 + {_random(seed, later)} AS changed",
        )
        .selectExpr(
            "*",
            f"changed + 1 + {_random(seed + 10, later)} AS went",
            f"if({_random(seed + 20, '2')} = 0, {_random(seed + 30, '100')}, "
            f"{_random(seed + 40, str(max(1, rows // 20)))}) AS customer",
        )
    )
    before, after = _random(seed + 50, "100000"), _random(seed + 60, "100000")
    kinds = [
        ("INSERT", "came", before, 0, "true"),
        ("UPDATE_BEFORE", "changed", before, 1, "true"),
        ("UPDATE_AFTER", "changed", after, 2, "true"),
        ("DELETE", "went", after, 3, f"{_random(seed + 70, '5')} = 0"),
    ]
    frames = [
        base.where(condition)
        .where(f"{file} < {FILES}")
        .selectExpr("*", f"{file} AS file", f"{amount} AS amount", f"{place} AS place")
        .selectExpr(
            *[c.strip() for c in columns.split(",")], f"'{op}' AS op", "file", "place", "e"
        )
        for op, file, amount, place, condition in kinds
    ]
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionAll(frame)
    return union


def _write_changes(spark: SparkSession, changes: DataFrame, folder: Path, name: str) -> None:
    """Write a changelog three times: as files, as two lanes, and as the final table.

    Flink reads files in any order, and so loses the order of changes across files. A lane is one
    file with the ordered changes of half of the rows.
    """
    changes = changes.persist()
    ordered = ["file", "e", "place"]
    target = folder / name
    by_file = changes.repartition(FILES, "file").sortWithinPartitions(*ordered)
    by_file.drop("place", "e").write.partitionBy("file").parquet(str(target))
    for part in target.glob("file=*"):
        (written,) = part.glob("*.parquet")
        written.rename(target / f"part-{int(part.name[5:]):05}.parquet")
        shutil.rmtree(part)
    _in_order(target)
    for lane in range(2):
        (
            changes.where(F.col("e") % 2 == lane)
            .coalesce(1)
            .sortWithinPartitions(*ordered)
            .drop("file", "place", "e")
            .write.mode("append")
            .option("parquet.block.size", str(2**30))
            .parquet(str(folder / f"{name}_lanes"))
        )
    columns = [column for column in changes.columns if column not in (*ordered, "op")]
    now = changes.groupBy(*columns).agg(F.expr(f"sum({SIGN})").alias("there"))
    now.where("there > 0").drop("there").coalesce(2).write.parquet(str(folder / f"{name}_now"))
    changes.unpersist()


def _in_order(folder: Path) -> None:
    """Set the files' modification times in order, since Spark's file source reads by time."""
    for junk in [*folder.glob(".*.crc"), *folder.glob("_SUCCESS"), *folder.glob("._SUCCESS*")]:
        junk.unlink(missing_ok=True)
    files = sorted(folder.glob("*.parquet"))
    if len(files) != FILES:
        raise RuntimeError(f"expected {FILES} files in {folder}, found {len(files)}")
    for number, file in enumerate(files):
        os.utime(file, (START / 1000 + number, START / 1000 + number))
