# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Compares this project with Flink, stock Spark and batch Spark, on one machine.

Each run is a separate process. An unmeasured run of the query in the same process comes first, to
compile the code as in a long-running job. The contestants take turns. The final rows are compared
with batch Spark's rows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tqdm import tqdm

import data
import flink_side
import report
import workloads
from measuring import (
    CACHE,
    MEMORY,
    PROVIDER,
    RESULTS,
    ROCKSDB,
    generate_events,
    keep,
    measure,
    number,
    surroundings,
)

SPLIT = {"spark.sql.changelog.aggregate.distinctSplit.enabled": "true"}
ONE_LEVEL = {"spark.sql.changelog.rank.twoLevel.enabled": "false"}

# By name of a contestant: the kind of run for spark_side, and the settings.
SPARK: dict[str, tuple[str, dict[str, str]]] = {
    "batch": ("batch", {}),
    "recompute": ("recompute", {}),
    "ours": ("ours", {}),
    "ours-memory": ("ours", MEMORY),
    "ours-rocksdb": ("ours", ROCKSDB),
    "ours-split": ("ours", SPLIT),
    "ours-rocksdb-split": ("ours", ROCKSDB | SPLIT),
    "ours-one-level": ("ours", ONE_LEVEL),
    "stock": ("stock", MEMORY),
    "stock-rocksdb": ("stock", ROCKSDB),
}
CONTESTANTS = [*SPARK, *flink_side.CONFIGURATIONS]
DEFAULT = [
    name
    for name in CONTESTANTS
    if name not in ("ours-memory", "ours-rocksdb-split", "stock-rocksdb")
]


def main() -> None:
    """Run the workloads of the command line, and print and save the table."""
    options = _options()
    folder, warm = (CACHE / "bench" / str(n) for n in (options.events, options.warm))
    for target, events in ((warm, options.warm), (folder, options.events)):
        if not data.is_there(target):
            generate_events(target, events)
    class_path = ""
    if any(name.startswith("flink") for name in options.contestants):
        class_path = flink_side.prepare(CACHE)

    logs = Path(tempfile.mkdtemp(prefix="bench-logs-"))
    runs: list[dict[str, Any]] = []
    plan = [
        (workload, turn, name)
        for workload in options.workloads
        for turn in range(options.repeat)
        for name in options.contestants
        if takes_part(name, workload)
    ]
    about = _about(options)
    progress = tqdm(plan, file=sys.stderr, smoothing=0)
    for workload, turn, name in progress:
        progress.set_postfix_str(f"{workload.name} {name}")
        log = logs / f"{workload.name}-{name}-{turn}.log"
        if name in SPARK:
            command = _spark_command(workload, name, turn, folder, warm, options)
        else:
            command = _flink_command(workload, name, class_path, folder, warm, logs, options)
        result = measure(command, log, options.timeout)
        found = {"workload": workload.name, "contestant": name, "turn": turn, **result}
        runs.append(found)
        progress.write(report.run_line(found), file=sys.stderr)
        keep(options.output, {**about, "runs": runs}, report.render(about, runs))
    print(report.render(about, runs))
    failed = [run for run in runs if "error" in run]
    if failed:
        print(f"{len(failed)} runs failed; their logs are in {logs}", file=sys.stderr)
    else:
        shutil.rmtree(logs)
    if failed or report.wrong(runs):
        sys.exit(1)


def _about(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "events": options.events,
        "warm": options.warm,
        "warm_runs": options.warm_runs,
        "batches": options.batches,
        "repeat": options.repeat,
        "memory": options.memory,
        "master": options.master,
        **surroundings(),
    }


def _options() -> argparse.Namespace:
    names = list(workloads.BY_NAME)
    parser = argparse.ArgumentParser(prog="dev/bench", description=__doc__)
    parser.add_argument("workload", nargs="*", help=f"any of {', '.join(names)}; default: all")
    parser.add_argument("--events", type=number, default=1_000_000, help="such as 200k or 5M")
    parser.add_argument(
        "--warm", type=number, default=1_000_000, help="events of an unmeasured first run"
    )
    parser.add_argument("--warm-runs", type=int, default=1, help="number of unmeasured runs")
    parser.add_argument("--batches", type=int, default=5, choices=(1, 2, 4, 5, 10, 20, 25, 50))
    parser.add_argument("--repeat", type=int, default=1, help="measured runs per contestant")
    parser.add_argument(
        "--contestants", nargs="+", choices=CONTESTANTS, default=DEFAULT, metavar="NAME",
        help=f"any of {', '.join(CONTESTANTS)}",
    )  # fmt: skip
    parser.add_argument(
        "--master", default="local[2]", help="Spark master for every contestant on Spark"
    )
    parser.add_argument("--memory", default="4g", help="heap of each process")
    parser.add_argument("--timeout", type=int, default=900, help="seconds for one run")
    parser.add_argument(
        "--provider", action="append", default=[], metavar="NAME=CLASS",
        help="also measure this project with a state store provider, as contestant ours-NAME",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
        help="a Spark setting for every contestant on Spark",
    )  # fmt: skip
    parser.add_argument(
        "--output",
        type=Path,
        help="path for text and JSON, without a suffix; default: in benchmarks/results",
    )
    options = parser.parse_args()
    unknown = [name for name in options.workload if name not in names]
    if unknown:
        parser.error(f"no workload {', '.join(unknown)}; there are {', '.join(names)}")
    options.output = options.output or RESULTS / f"workloads-{options.events}-{options.batches}"
    options.workloads = [workloads.BY_NAME[name] for name in options.workload or names]
    for provider in options.provider:
        name, class_name = provider.split("=", 1)
        SPARK[f"ours-{name}"] = ("ours", {PROVIDER: class_name})
        options.contestants = [*options.contestants, f"ours-{name}"]
    # Batch Spark runs first, since its rows are the expected rows.
    options.contestants = ["batch", *(name for name in options.contestants if name != "batch")]
    return options


def takes_part(name: str, workload: workloads.Workload) -> bool:
    """Tell whether a contestant can run a workload."""
    if name.endswith("-split"):
        return workload.name.startswith("W3")
    if name.endswith("-one-level"):
        return workload.name == "W6g"
    if name.endswith("-multi"):
        return workload.name == "W11"
    if name == "recompute":
        return any(table in workloads.KEYS for table in workload.tables)
    return not name.startswith("stock") or workload.stock is not None


def _spark_command(
    workload: workloads.Workload,
    name: str,
    turn: int,
    folder: Path,
    warm: Path,
    options: argparse.Namespace,
) -> list[str]:
    side, settings = SPARK[name]
    given = dict(setting.split("=", 1) for setting in options.settings)
    task = {
        "workload": workload.name,
        "side": side,
        "folder": str(folder),
        "warm_folder": str(warm),
        "warm_runs": options.warm_runs,
        "batches": options.batches,
        "settings": settings | given,
        "memory": options.memory,
        "master": options.master,
        "verify": turn == 0,
    }
    script = Path(__file__).with_name("spark_side.py")
    return [sys.executable, str(script), json.dumps(task)]


def _flink_command(
    workload: workloads.Workload,
    name: str,
    class_path: str,
    folder: Path,
    warm: Path,
    logs: Path,
    options: argparse.Namespace,
) -> list[str]:
    scripts = []
    for step, target in enumerate([warm] * options.warm_runs + [folder]):
        path = logs / f"{workload.name}-{name}-{step}.sql"
        settings = flink_side.CONFIGURATIONS[name]
        path.write_text(flink_side.script(workload, target, settings, logs))
        scripts.append(path)
    return flink_side.command(class_path, options.memory, scripts)


if __name__ == "__main__":
    main()
