# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Refreshes three views of one TPC-H query over ordinary tables, in a separate process."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from measuring import ROOT
from sessions import answer, cpu_seconds, jvm, session
from sinks_side import DELTA, PACKAGES
from suites_side import TPCH_KEYS, code_of, generate_raw_tpch, used_tables

SHARES = (0.0001, 0.01, 0.3)
PARTS = 10_000
WAYS = {"incremental": " INCREMENTAL", "full": " FULL", "auto": ""}

# The clauses to create tables, by kind of change tracking.
KINDS = {
    "feeds": "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    "files": "USING delta TBLPROPERTIES (delta.enableDeletionVectors = false)",
    "vectors": "USING delta TBLPROPERTIES (delta.enableDeletionVectors = true)",
    "parquet": "USING parquet",
}
# The changing tables, with the expression for each changed column.
UPDATES = {
    "supplier": "s_acctbal = s_acctbal + 1",
    "part": "p_size = p_size % 50 + 1",
    "partsupp": "ps_supplycost = ps_supplycost + 1, ps_availqty = ps_availqty + 1",
    "customer": "c_acctbal = c_acctbal + 1",
    "orders": "o_totalprice = o_totalprice + 1, o_orderdate = date_add(o_orderdate, 1)",
    "lineitem": "l_quantity = l_quantity + 1, l_extendedprice = l_extendedprice + 1",
}
# Append-only tables get new orders with their lines.
_COMES = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
_BEYOND = 10_000_000  # above every key of TPC-H below scale 1


@dataclass(frozen=True)
class Task:
    """The task of one process."""

    kind: str
    query: str
    scale: float
    rounds: int
    using: str
    settings: dict[str, str]
    jar: str
    memory: str


def main() -> None:
    """Run the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    place = Path(tempfile.mkdtemp(prefix="bench-views-"))
    extensions = {"spark.jars.packages": PACKAGES["delta"], **DELTA}
    warehouse = {"spark.sql.warehouse.dir": str(place / "warehouse")}
    spark = session({**extensions, **warehouse, **task.settings}, task.memory, jar=task.jar)
    sql = (ROOT / "tests" / "sql" / "tpch" / f"{task.query}.sql").read_text()
    code = code_of(sql)
    tables = used_tables("tpch", sql)
    _make(spark, task, tables, place / "raw")
    for way in WAYS:
        spark.sql(f"CREATE MATERIALIZED VIEW kept_{way} USING {task.using} AS {code}")
    refreshes: list[dict[str, Any]] = []
    for turn in range(task.rounds + 1):
        # The first round compiles the generated code, and is short to teach AUTO little.
        for share in SHARES if turn else SHARES[:2]:
            for name in tables:
                _change(spark, task, name, share, turn)
                # Load the log of the new version now, or the first refresh would pay for it.
                spark.table(name).write.format("noop").mode("overwrite").save()
            found = {"round": turn, "share": share, **_refresh(spark, turn)}
            print(found, file=sys.stderr, flush=True)
            if turn:
                refreshes.append(found)
    differing = {way: spark.sql(f"VERIFY MATERIALIZED VIEW kept_{way}").count() for way in WAYS}
    right = not any(differing.values())
    answer(spark, {"refreshes": refreshes, "right": right})
    spark.stop()
    shutil.rmtree(place, ignore_errors=True)


def _make(spark: SparkSession, task: Task, tables: list[str], raw: Path) -> None:
    generate_raw_tpch(raw, task.scale)
    for name in tables:
        spark.read.parquet(str(raw / f"{name}.parquet")).createOrReplaceTempView("raw")
        columns = ", ".join(
            f"{field.name} {field.dataType.simpleString()}" for field in spark.table("raw").schema
        )
        spark.sql(f"CREATE TABLE {name} ({columns}) {KINDS[task.kind]}")
        spark.sql(f"INSERT INTO {name} SELECT * FROM raw")
    shutil.rmtree(raw)


def _change(spark: SparkSession, task: Task, name: str, share: float, turn: int) -> None:
    """Change a share of a table's rows, different rows in each round."""
    key = _COMES[name] if name in _COMES else ", ".join(TPCH_KEYS[name])
    wanted = f"pmod(xxhash64({key}, {turn}), {PARTS}) < {round(share * PARTS)}"
    if task.kind != "parquet" and name in UPDATES:
        spark.sql(f"UPDATE {name} SET {UPDATES[name]} WHERE {wanted}")
    elif task.kind == "parquet" and name in _COMES:
        # Copy a share of the initial rows under new keys.
        number = turn * len(SHARES) + SHARES.index(share) + 1
        fresh = f"{key} + {number * _BEYOND} AS {key}"
        columns = [fresh if column == key else column for column in spark.table(name).columns]
        spark.sql(
            f"INSERT INTO {name} SELECT {', '.join(columns)} FROM {name} "
            f"WHERE {wanted} AND {key} < {_BEYOND}"
        )


def _refresh(spark: SparkSession, turn: int) -> dict[str, Any]:
    """Refresh the three views, starting with a different view in each round."""
    ways = list(WAYS)
    ways = ways[turn % 3 :] + ways[: turn % 3]
    found: dict[str, Any] = {}
    for way in ways:
        before = cpu_seconds((jvm(spark) / "stat").read_text())[1]
        spark.sql(f"REFRESH MATERIALIZED VIEW kept_{way}{WAYS[way]}")
        found[f"{way}_cpu"] = cpu_seconds((jvm(spark) / "stat").read_text())[1] - before
        last = spark.sql(f"SHOW REFRESHES OF kept_{way}").head()
        assert last is not None
        found[way] = last.seconds
        if way == "auto":
            expected = last.estimate
            found["mode"] = last["mode"]
            found["expected"] = [expected.incremental_seconds, expected.full_seconds]
            found["bytes"] = [expected.bytes_changed, expected.bytes_in_all]
    return found


if __name__ == "__main__":
    main()
