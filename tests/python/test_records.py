# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Tables from Debezium's and Canal's records in files, read in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from processes import ROOT
from spark_changelog import (
    from_canal,
    from_changelog,
    from_debezium,
    from_goldengate,
    from_maxwell,
    to_changelog,
)

CORPUS = ROOT / "tests" / "resources" / "records"


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    """Read records line by line, one file per batch."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    return lines.select("value", F.col("_metadata.file_name").alias("file"))


def split(records: list[str], folder: Path) -> Path:
    """Write each record into a separate file."""
    folder.mkdir()
    for number, record in enumerate(records):
        (folder / f"{number:03}.json").write_text(record + "\n")
    return folder


def kept(df: DataFrame, folder: Path) -> list[tuple[Any, ...]]:
    """Run a changelog to its end, and return the table of the emitted changes."""
    table: list[tuple[Any, ...]] = []

    def apply(batch: DataFrame, _: int) -> None:
        changes = [(row[-1], tuple(row)[:-1]) for row in batch.collect()]
        for kind, row in changes:
            if kind in ("delete", "update_preimage"):
                table.remove(row)
        table.extend(row for kind, row in changes if kind in ("insert", "update_postimage"))

    query = (
        to_changelog(df)
        .writeStream.foreachBatch(apply)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sorted(table)


def test_debezium_from_files_is_aggregated(spark: SparkSession, tmp_path: Path) -> None:
    records = (CORPUS / "debezium" / "mysql.jsonl").read_text().splitlines()
    folder = split(records, tmp_path / "records")
    schema = StructType().add("id", "integer", nullable=False)
    schema.add("open", "boolean").add("note", "string")
    orders = from_debezium(stream(spark, folder), schema, key="id")
    notes = orders.groupBy("open").agg(F.count("*").alias("n"), F.max("note").alias("last"))
    batch = from_debezium(spark.read.text(str(folder)), schema, key="id")
    assert sorted(map(tuple, batch.collect())) == [(1, False, "a"), (5, False, "b")]
    assert kept(notes, tmp_path) == [(False, 2, "b")]


def test_canal_from_files(spark: SparkSession, tmp_path: Path) -> None:
    records = (CORPUS / "canal" / "orders.jsonl").read_text().splitlines()
    folder = split(records, tmp_path / "records")
    arguments: dict[str, Any] = {"table": "shop.orders", "metadata": ["database"]}
    orders = from_canal(stream(spark, folder), "id INT, customer STRING", key="id", **arguments)
    assert kept(orders.orderBy("id"), tmp_path) == [(2, None, "shop"), (4, "Cyd", "shop")]


def test_maxwell_and_goldengate_take_the_arguments_of_canal(spark: SparkSession) -> None:
    arguments: dict[str, Any] = {"key": "id", "on_truncate": "apply", "on_error": "drop"}
    row = '{"type": "insert", "ts": 1, "table": "t", "data": {"id": 1, "n": 5}}'
    dropped = '{"type": "table-drop", "ts": 2, "database": "d", "table": "t"}'
    for records, rows in [([row, "oops"], [(1, 5, "t")]), ([row, dropped], [])]:
        df = spark.createDataFrame([(each,) for each in records], "value STRING")
        table = from_maxwell(df, "id INT, n INT", metadata="table", table="t", **arguments)
        assert [tuple(row) for row in table.collect()] == rows
    df = spark.createDataFrame(
        [
            ('{"op_type": "I", "pos": "1", "table": "S.T", "after": {"id": 1, "n": 5}}',),
            ('{"op_type": "U", "pos": "2", "table": "S.T", "after": {"id": 1}}',),
        ],
        "value STRING",
    )
    table = from_goldengate(df, "id INT, n INT", metadata="pos", table="T", **arguments)
    assert [tuple(row) for row in table.collect()] == [(1, 5, "2")]


def test_every_argument_reaches_spark(spark: SparkSession) -> None:
    after = {"id": 1, "d": "1234", "t": 1, "u": 2, "b": "ff", "s": "?"}
    event = {"op": "u", "after": after, "source": {"table": "t", "lsn": 3}}
    old = {**event, "after": {**after, "s": "kept"}, "source": {"table": "t", "lsn": 2}}
    events = [(json.dumps(event), "{}", 1), (json.dumps(old), "{}", 2), ("oops", "{}", 3)]
    df = spark.createDataFrame(events, "body STRING, name STRING, at INT")
    table = from_debezium(
        df,
        "id INT, d DECIMAL(6, 2), t TIMESTAMP_NTZ, u TIMESTAMP_NTZ, b BINARY, s STRING",
        key="id",
        value="body",
        message_key="name",
        input="upsert",
        sequence_by="source.lsn",
        table="t",
        metadata=["source.lsn", "at"],
        decimal_handling_mode="string",
        time_precision_mode="connect",
        binary_handling_mode="hex",
        encodings={"u": "MicroTimestamp"},
        unavailable_value="?",
        on_truncate="ignore",
        on_error="drop",
        on_schema_change="ignore",
    )
    assert table.columns == ["id", "d", "t", "u", "b", "s", "source_lsn", "at"]
    [row] = table.select("id", "d", "t", "u", "b", "s", "source_lsn", "at").collect()
    assert [str(value) for value in row] == [
        "1",
        "1234.00",
        "1970-01-01 00:00:00.001000",
        "1970-01-01 00:00:00.000002",
        "b'\\xff'",
        "kept",
        "3",
        "1",
    ]


def test_events_go_on_from_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    def event(id: int, city: str, lsn: int) -> str:
        row = {"id": id, "city": city}
        return json.dumps({"op": "u", "after": row, "source": {"lsn": lsn}})

    table = spark.createDataFrame(
        [(1, "Oslo", 7), (2, "Rome", 7)], "id INT, city STRING, source_lsn LONG"
    )
    lines = stream(spark, split([event(1, "Old", 6), event(2, "Bern", 8)], tmp_path / "records"))
    rides = from_debezium(lines, "id INT, city STRING", key="id", snapshot=table)
    assert kept(rides, tmp_path) == [(1, "Oslo"), (2, "Bern")]
    changes = spark.createDataFrame([("d", 1), ("c", 3)], "op STRING, id INT")
    feed = from_changelog(changes, change_type="op", key="id", snapshot=table.select("id"))
    assert sorted(map(tuple, feed.collect())) == [(2,), (3,)]


def test_an_error_tells_the_file(spark: SparkSession, tmp_path: Path) -> None:
    folder = split(["oops"], tmp_path / "records")
    lines = spark.read.text(str(folder)).select(
        "value", F.col("_metadata.file_name").alias("file")
    )
    with pytest.raises(Exception, match=r"CHANGELOG_RECORD_MALFORMED.*\(file=000.json\)"):
        from_debezium(lines, "id INT", key="id").collect()


def test_records_that_cannot_be_read_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    event = '{"op": "c", "after": {"id": 1}, "source": {"lsn": 1}}'
    lines = stream(spark, split([event, "oops"], tmp_path / "records"))
    letters = str(tmp_path / "letters")
    assert kept(from_debezium(lines, "id INT", key="id", dead_letter=letters), tmp_path) == [(1,)]
    [letter] = spark.read.json(letters).collect()
    assert (letter.record, letter.source.file) == ("oops", "001.json")
