# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Changes a query after a history, and starts the changed query anew, in a separate process.

The table comes from ``growth_side``.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import spark_changelog as changelog
from growth_side import OPERATORS, changing_table, read_table
from sessions import answer, checked, measured, session, stream

BATCHES = 5  # batches of changes after the history
CHANGES = 1_000

_GROUPS = "SELECT id, sum(v) AS total, count(*) AS n FROM t GROUP BY id"
_BY_GROUP = "SELECT k, {} FROM (SELECT b.k, a.v FROM t a JOIN t b ON a.other = b.id) GROUP BY k"
# Pairs of a query and the changed query.
CHANGED = {
    "a column of others": (_GROUPS, f"SELECT *, total / n AS mean FROM ({_GROUPS})"),
    "HAVING": (_GROUPS, f"{_GROUPS} HAVING sum(v) > 50000"),
    "LIMIT on top": (_GROUPS, f"{_GROUPS} ORDER BY total DESC, id LIMIT 10"),
    "an aggregate on top": (
        OPERATORS["join"],
        f"SELECT other, sum(v) AS total, max(id) AS newest FROM ({OPERATORS['join']}) "
        "GROUP BY other",
    ),
    "a further function": (
        _BY_GROUP.format("sum(v) AS total"),
        _BY_GROUP.format("sum(v) AS total, max(v) AS most"),
    ),
    "a filter at the source": (_GROUPS, _GROUPS.replace("FROM t", "FROM t WHERE v > 10")),
}


@dataclass(frozen=True)
class Task:
    """The task of one process: change one query."""

    change: str
    cache: str
    rows: int
    warm_rows: int
    settings: dict[str, str]
    memory: str


def main() -> None:
    """Run the task of the first argument."""
    task = Task(**json.loads(sys.argv[1]))
    spark = session(task.settings, task.memory)
    _change(spark, task, task.warm_rows)
    answer(spark, _change(spark, task, task.rows))
    spark.stop()


def _change(spark: SparkSession, task: Task, rows: int) -> dict[str, Any]:
    folder = changing_table(Path(task.cache), rows, CHANGES, BATCHES)
    read_table(spark, folder)
    before, after = (changelog.to_changelog(spark.sql(sql)) for sql in CHANGED[task.change])
    checkpoints = Path(tempfile.mkdtemp(prefix="bench-evolve-"))
    first, second, third = (str(checkpoints / name) for name in ("before", "after", "anew"))
    _run(checked(before), first)
    # The observation is an operator, and part of the query.
    fates = changelog.evolve(checked(after), first).collect()
    changelog.evolve(checked(after), first, second)
    evolved = _run(checked(after), second)
    anew = _run(checked(after), third)
    shutil.rmtree(checkpoints)
    return {
        "states": [fate["state"] for fate in fates],
        "seconds": evolved["seconds"],
        "anew_seconds": anew["seconds"],
        "right": all(evolved[name] == anew[name] for name in ("count", "sum")),
    }


def _run(frame: DataFrame, checkpoint: str) -> dict[str, Any]:
    return measured(stream(frame, "append", checkpoint)[0])


if __name__ == "__main__":
    main()
