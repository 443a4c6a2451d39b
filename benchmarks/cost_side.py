# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Creates and refreshes one view and one table of the same query, in a separate process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from measuring import PREFIX, ROOT
from sessions import answer, session
from sinks_side import DELTA, PACKAGES
from suites_side import TPCH_KEYS, code_of, generate_raw_tpch, used_tables
from views_side import UPDATES

TPCH = ("q01", "q03", "q05", "q12", "q18")
PER_CUSTOMER = 30
# Views over a table of facts, with 300 updated facts. For "days" the table is partitioned by day,
# and the facts of one day are updated.
FACTS = {
    "sums": (
        "SELECT store, day, sum(amount) AS amount, count(*) AS n FROM facts GROUP BY store, day"
    ),
    "join": (
        "SELECT f.id, f.store, f.amount, c.name "
        "FROM facts f JOIN customers c ON f.customer = c.id"
    ),
    "days": (
        "SELECT day, sum(amount) AS amount, count(DISTINCT store) AS stores "
        "FROM facts GROUP BY day"
    ),
    "top3": (
        "SELECT customer, id, amount FROM (SELECT customer, id, amount, row_number() OVER "
        "(PARTITION BY customer ORDER BY amount DESC, id) AS place FROM facts) WHERE place <= 3"
    ),
}
# The keys of the views' rows.
KEYS = {"sums": "store", "join": "id", "top3": "id"}
CHANGED = 300
FULL = "full"
PARTS = 1000  # TPC-H's tables are divided into parts, and one part changes


@dataclass(frozen=True)
class Task:
    """The task of one process."""

    workload: str
    size: float
    rounds: int
    memory: str
    jar: str = ""
    place: str = ""
    step: str = ""


def main() -> None:
    """Run the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    if not task.step:
        place = Path(tempfile.mkdtemp(prefix="bench-cost-"))
        # Each step is a process, since only one process at a time can open the metastore.
        found = _anew(replace(task, place=str(place), step="measure"))
        for step in _STEPS:
            again = _anew(replace(task, place=str(place), step=step))
            found[f"new_{step}"] = again["seconds"]
        print(PREFIX + json.dumps(found), flush=True)
        shutil.rmtree(place, ignore_errors=True)
        return
    spark = open_session(task)
    if task.step == "measure":
        # A first run over a tenth of the rows compiles the generated code.
        small = _measure(spark, replace(task, size=task.size / 10, rounds=2), "small")
        measured = _measure(spark, task, FULL)
        _change(spark, task, 99)
        right = not spark.sql("VERIFY MATERIALIZED VIEW kept").collect()
        _change(spark, task, 100)
        answer(spark, {**measured, "small": small, "right": right})
    else:
        spark.sql(f"USE {FULL}")
        answer(spark, {"seconds": _timed(spark, _STEPS[task.step](task))["seconds"]})
    spark.stop()


def _anew(task: Task) -> dict[str, Any]:
    """Run a step in a new process. The measured time excludes the start of Spark."""
    command = [sys.executable, __file__, json.dumps(asdict(task))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(PREFIX))
    found: dict[str, Any] = json.loads(line.removeprefix(PREFIX))
    return found


def open_session(task: Task) -> SparkSession:
    place = Path(task.place)
    settings = {
        "spark.jars.packages": PACKAGES["delta"],
        **DELTA,
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={place}/metastore;create=true"
        ),
        # Delta's default of fifty tasks for a log of ten entries would slow down both sides.
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    return session(settings, task.memory, jar=task.jar)


def _using(task: Task) -> str:
    return "parquet" if task.workload in TPCH else "delta"


def _query(task: Task) -> str:
    if task.workload in FACTS:
        return FACTS[task.workload]
    return code_of((ROOT / "tests" / "sql" / "tpch" / f"{task.workload}.sql").read_text())


def make(spark: SparkSession, task: Task) -> None:
    made = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    if task.workload in FACTS:
        rows = round(task.size)
        customers = rows // PER_CUSTOMER
        by = "PARTITIONED BY (day)" if task.workload == "days" else ""
        spark.sql(
            f"CREATE TABLE facts {made} {by} AS SELECT id, pmod(hash(id), 100) AS store, "
            "date_add(DATE'2025-01-01', CAST(pmod(hash(id, 1), 365) AS INT)) AS day, "
            f"pmod(hash(id, 2), {customers}) AS customer, "
            f"CAST(pmod(hash(id, 3), 100000) AS DECIMAL(12,2)) AS amount FROM range({rows})"
        )
        spark.sql(
            f"CREATE TABLE customers {made} AS "
            f"SELECT id, concat('customer ', id) AS name FROM range({customers})"
        )
        return
    raw = Path(task.place) / "raw"
    generate_raw_tpch(raw, task.size)
    for name in used_tables("tpch", _query(task)):
        spark.read.parquet(str(raw / f"{name}.parquet")).createOrReplaceTempView("raw")
        spark.sql(f"CREATE TABLE {name} {made} AS SELECT * FROM raw")
    shutil.rmtree(raw)


def _change(spark: SparkSession, task: Task, turn: int) -> None:
    if task.workload in FACTS:
        rows = round(task.size)
        one_day = f"day = date_add(DATE'2025-01-01', {turn})"
        some = f"pmod(id, {rows // CHANGED}) = {turn}"
        which = one_day if task.workload == "days" else some
        spark.sql(f"UPDATE facts SET amount = amount + 1 WHERE {which}")
    else:
        for name in _tables(task):
            if name in UPDATES:
                key = ", ".join(TPCH_KEYS[name])
                wanted = f"pmod(xxhash64({key}, {turn}), {PARTS}) = 0"
                spark.sql(f"UPDATE {name} SET {UPDATES[name]} WHERE {wanted}")
    for table in _tables(task):
        # Load the log of the new version now, or the first measured statement would pay for it.
        spark.table(table).write.format("noop").mode("overwrite").save()


def _tables(task: Task) -> list[str]:
    if task.workload in FACTS:
        return ["facts", "customers"]
    return used_tables("tpch", _query(task))


def _timed(spark: SparkSession, statement: str) -> dict[str, Any]:
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    jobs, read = scheduler.numTotalJobs(), _bytes_read(spark)
    began = time.monotonic()
    spark.sql(statement)
    seconds = time.monotonic() - began
    jobs, read = scheduler.numTotalJobs() - jobs, _bytes_read(spark) - read
    return {"seconds": seconds, "jobs": jobs, "read": read, "took": _seconds_of(spark, jobs)}


def _seconds_of(spark: SparkSession, number: int) -> list[float]:
    """Return the seconds of the last jobs."""
    every = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    last = sorted((every.apply(one) for one in range(every.size())), key=lambda job: job.jobId())
    return [
        (job.completionTime().get().getTime() - job.submissionTime().get().getTime()) / 1000
        for job in last[len(last) - number :]
    ]


def _bytes_read(spark: SparkSession) -> int:
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    executors = context.statusStore().executorList(True)
    return sum(executors.apply(one).totalInputBytes() for one in range(executors.size()))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _beside(task: Task, database: str) -> int:
    """Return the size of everything in the view's folder that a plain table doesn't have."""
    folder = Path(task.place) / "warehouse" / f"{database}.db" / "kept"
    if _using(task) == "delta":
        return _size(folder / "_changelog")
    rows = max(folder.glob("*/rows/batch-*"), key=lambda batch: batch.stat().st_mtime)
    return _size(folder) - _size(rows)


def _used_bytes(spark: SparkSession, task: Task) -> int:
    """Return the size of the columns that the query reads, as compressed Parquet."""
    plan = spark.sql(_query(task))._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    place = Path(task.place) / "used"
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        output = leaf.output()
        names = [output.apply(column).name() for column in range(output.size())]
        table = leaf.catalogTable().get().identifier().table()
        columns = [name for name in spark.table(table).columns if name in names]
        spark.table(table).select(columns).write.parquet(str(place / table), mode="overwrite")
    size = _size(place)
    shutil.rmtree(place)
    return size


def _copy(spark: SparkSession) -> None:
    """Copy the view to tables that MERGE, and DELETE and INSERT, change."""
    properties = "(delta.enableDeletionVectors = true, delta.enableChangeDataFeed = true)"
    for name in ("merged", "replaced"):
        spark.sql(
            f"CREATE TABLE {name} USING delta TBLPROPERTIES {properties} AS SELECT * FROM kept"
        )


def _written(spark: SparkSession, key: str) -> dict[str, float]:
    """Write the last changes of the view to the copies, and return the seconds of the jobs."""
    version = spark.sql("DESCRIBE HISTORY kept LIMIT 1").first()["version"]  # type: ignore[index]
    rows = (
        "SELECT * EXCEPT (_commit_version, _commit_timestamp) "
        f"FROM changes('kept', from_version => {version}) WHERE _change_type <> 'update_preimage'"
    )
    # a changed row may be a delete and an insert
    spark.sql(
        "CREATE OR REPLACE TABLE changed USING delta AS SELECT last.* FROM (SELECT "
        f"max_by(struct(*), _change_type <> 'delete') AS last FROM ({rows}) "
        f"GROUP BY {key})"
    )
    columns = spark.table("kept").columns
    updated = ", ".join(f"{name} = c.{name}" for name in columns)
    inserted = ", ".join(f"c.{name}" for name in columns)
    merge = (
        f"MERGE INTO merged t USING changed c ON t.{key} = c.{key} "
        "WHEN MATCHED AND c._change_type = 'delete' THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {updated} "
        "WHEN NOT MATCHED AND c._change_type <> 'delete' "
        f"THEN INSERT ({', '.join(columns)}) VALUES ({inserted})"
    )
    changed = spark.table("changed").select(key).collect()
    delete = (
        f"DELETE FROM replaced WHERE {key} IN ({', '.join(str(row[key]) for row in changed)})"
    )
    insert = (
        f"INSERT INTO replaced SELECT {', '.join(columns)} FROM changed "
        "WHERE _change_type <> 'delete'"
    )
    spent = {name: sum(_timed(spark, name)["took"]) for name in (merge, delete, insert)}
    return {"merge": spent[merge], "replace": spent[delete] + spent[insert]}


def _overwrite(task: Task) -> str:
    return f"INSERT OVERWRITE TABLE plain {_query(task)}"


_STEPS = {
    "refresh": lambda task: "REFRESH MATERIALIZED VIEW kept INCREMENTAL",
    "overwrite": _overwrite,
}


def _measure(spark: SparkSession, task: Task, database: str) -> dict[str, Any]:
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    make(spark, task)
    query, using = _query(task), _using(task)
    found: dict[str, Any] = {}
    found["ctas"] = _timed(spark, f"CREATE TABLE plain USING {using} AS {query}")
    found["create"] = _timed(spark, f"CREATE MATERIALIZED VIEW kept USING {using} AS {query}")
    found["beside_first"] = _beside(task, database)
    found["refreshes"], found["overwrites"], found["written"] = [], [], []
    for turn in range(task.rounds + 1):
        if turn == 1 and task.workload in KEYS:
            _copy(spark)
        _change(spark, task, turn)
        refresh = _timed(spark, "REFRESH MATERIALIZED VIEW kept INCREMENTAL")
        if turn == 0:
            found["first"] = refresh
        else:
            found["refreshes"].append(refresh)
            if task.workload in KEYS:
                # the first job computes the batch
                sink = {"sink": sum(refresh["took"][1:])}
                found["written"].append({**sink, **_written(spark, KEYS[task.workload])})
            found["overwrites"].append(_timed(spark, _overwrite(task)))
    found["beside"], found["used"] = _beside(task, database), _used_bytes(spark, task)
    print(task.workload, database, found, file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
