# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Measures our operators beside stock Spark's, in one run.

Both sides read the same files with the same session settings, in turn, several times over; what
counts is the ratio. Stock Spark runs the same query in update mode where it can, and every query
once as a batch over all input, which is what keeping a result current by recomputing costs.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from tqdm import tqdm

import spark_changelog as changelog
import workloads

PROVIDERS = {
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


@dataclass(frozen=True)
class Run:
    """One streaming run: seconds in all, seconds per batch, bytes of state."""

    seconds: float
    batches: tuple[float, ...]
    state_bytes: int
    state_rows: int

    @property
    def typical_batch(self) -> float:
        """Median of the batches after the first, in seconds."""
        return statistics.median(self.batches[1:] or self.batches)


def main() -> None:
    """Run the workloads named on the command line and print a table."""
    names = [workload.name for workload in workloads.ALL]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", nargs="*", help=f"any of {', '.join(names)}")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--provider", choices=PROVIDERS, action="append")
    parser.add_argument("--output", type=Path, help="also write the table here")
    options = parser.parse_args()
    chosen = [w for w in workloads.ALL if w.name in (options.workload or names)]

    spark = changelog.configure(
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", "2")
    ).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lines = [
        f"Spark {spark.version}, Java {spark._jvm.System.getProperty('java.version')}, "
        f"{platform.machine()}, local[2]; {options.rows:,} rows in {options.batches} batches; "
        f"median of {options.repeat} runs, ours and stock in turn",
        "",
        f"{'workload':<22}{'state':<9}{'side':<7}{'seconds':>8}{'rows/s':>12}{'ratio':>7}"
        f"{'batch s':>9}{'state MB':>10}{'state rows':>12}",
    ]
    for workload in chosen:
        folder = Path(tempfile.mkdtemp(prefix=f"bench-{workload.name}-"))
        try:
            workload.generate(spark, folder, options.rows, options.batches)
            for provider in options.provider or list(PROVIDERS):
                lines += measure(spark, workload, folder, provider, options)
        finally:
            shutil.rmtree(folder)
    table = "\n".join(lines)
    print(table)
    if options.output:
        options.output.write_text(table + "\n")


def measure(
    spark: SparkSession,
    workload: workloads.Workload,
    folder: Path,
    provider: str,
    options: argparse.Namespace,
) -> list[str]:
    """Measure one workload with one state store; return the table's lines."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[provider])
    schema = spark.read.parquet(str(folder)).schema
    names = ["ours", *workload.settings, *(["stock"] if workload.stock else [])]
    sides: dict[str, list[Run]] = {name: [] for name in names}
    recompute: list[float] = []
    progress = tqdm(total=(options.repeat + 1) * len(sides), desc=f"{workload.name} {provider}")
    for turn in range(options.repeat + 1):  # the first turn warms up
        for side, runs in sides.items():
            raw = (
                spark.readStream.schema(schema)
                .option("maxFilesPerTrigger", 2)
                .parquet(str(folder))
            )
            settings = workload.settings.get(side, {})
            for key, value in settings.items():
                spark.conf.set(key, value)
            is_stock = side == "stock"
            frame = workload.query(raw) if is_stock else workload.ours(raw)
            run = stream(frame, workload.stock_mode if is_stock else "append")
            for key in settings:
                spark.conf.unset(key)
            if turn:
                runs.append(run)
            progress.update()
        table = workload.read(spark.read.parquet(str(folder)))
        started = time.perf_counter()
        workload.query(table).write.format("noop").mode("overwrite").save()
        if turn:
            recompute.append(time.perf_counter() - started)
    progress.close()

    rows = spark.read.parquet(str(folder)).count()
    ours = statistics.median(run.seconds for run in sides["ours"])
    lines = [
        line(workload.name, provider, side, runs, rows, ours) for side, runs in sides.items()
    ]
    batch = statistics.median(recompute)
    lines.append(
        f"{workload.name:<22}{provider:<9}{'batch':<7}{batch:>8.2f}{rows / batch:>12,.0f}"
        f"{batch / ours:>7.2f}"
    )
    return lines


def line(name: str, provider: str, side: str, runs: Sequence[Run], rows: int, ours: float) -> str:
    """Format one side's figures; the ratio says how much longer than ours it takes."""
    seconds = statistics.median(run.seconds for run in runs)
    batch = statistics.median(run.typical_batch for run in runs)
    last = runs[-1]
    return (
        f"{name:<22}{provider:<9}{side:<7}{seconds:>8.2f}{rows / seconds:>12,.0f}"
        f"{seconds / ours:>7.2f}{batch:>9.2f}"
        f"{last.state_bytes / 2**20:>10.1f}{last.state_rows:>12,}"
    )


def stream(frame: DataFrame, output_mode: str) -> Run:
    """Run a streaming query over all its input into a sink that does nothing."""
    checkpoint = tempfile.mkdtemp(prefix="bench-checkpoint-")
    started = time.perf_counter()
    query = (
        frame.writeStream.format("noop")
        .outputMode(output_mode)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    seconds = time.perf_counter() - started
    reports = [report for report in query.recentProgress if report.numInputRows > 0]
    shutil.rmtree(checkpoint, ignore_errors=True)
    states = reports[-1].stateOperators
    return Run(
        seconds,
        tuple(report.durationMs["triggerExecution"] / 1000 for report in reports),
        sum(state.memoryUsedBytes for state in states),
        sum(state.numRowsTotal for state in states),
    )


if __name__ == "__main__":
    main()
