# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Refreshes views of random queries in three ways, in a separate process."""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
from typing import Any

from pyspark.sql import SparkSession

import cost_side
from sessions import answer

QUERIES = {
    **cost_side.FACTS,
    "total": "SELECT count(*) AS n, sum(amount) AS amount FROM facts",
    "large": "SELECT id, store, amount FROM facts WHERE amount > 90000",
    "names": (
        "SELECT c.name, count(*) AS n, max(f.amount) AS most FROM facts f "
        "JOIN customers c ON f.customer = c.id GROUP BY c.name"
    ),
    "stores": "SELECT store, count(DISTINCT customer) AS n FROM facts GROUP BY store",
    "never": (
        "SELECT c.id, c.name FROM customers c LEFT ANTI JOIN facts f "
        "ON f.customer = c.id AND f.amount > 50000"
    ),
}
WAYS = {"auto": "", "incremental": " INCREMENTAL", "full": " FULL"}
LEAST, MOST = 100_000, 300_000


def main() -> None:
    """Run the cases of the first argument."""
    task = json.loads(sys.argv[1])
    place = tempfile.mkdtemp(prefix="bench-decisions-")
    spark = cost_side.open_session(cost_side.Task("sums", 0, 0, task["memory"], place=place))
    _case(spark, random.Random(0), -1)  # compiles the code of Spark and of this project
    numbers = range(task["first"], task["first"] + task["count"])
    cases = [
        _case(spark, random.Random(task["seed"] * 10_000 + number), number) for number in numbers
    ]
    answer(spark, {"cases": cases})
    spark.stop()
    shutil.rmtree(place, ignore_errors=True)


def _case(spark: SparkSession, draw: random.Random, number: int) -> dict[str, Any]:
    name, rows = draw.choice(sorted(QUERIES)), draw.randint(LEAST, MOST)
    using, warm = draw.choice(["delta", "parquet"]), draw.random() < 0.5
    share = 10 ** draw.uniform(-4, -0.3)
    database = f"case_{number}".replace("-", "_")
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    cost_side.make(spark, cost_side.Task(name if name == "days" else "sums", rows, 0, ""))
    for way in WAYS:
        spark.sql(f"CREATE MATERIALIZED VIEW {way} USING {using} AS {QUERIES[name]}")
    if warm:
        for turn in range(2):
            _change(spark, name, 0.0001, turn)
            for way, clause in WAYS.items():
                spark.sql(f"REFRESH MATERIALIZED VIEW {way}{clause}")
    _change(spark, name, share, 2)
    took = {}
    for way in draw.sample(sorted(WAYS), len(WAYS)):
        began = time.monotonic()
        spark.sql(f"REFRESH MATERIALIZED VIEW {way}{WAYS[way]}")
        took[way] = time.monotonic() - began
    last = spark.sql("SHOW REFRESHES OF auto").select("mode", "reason").head()
    right = not spark.sql("VERIFY MATERIALIZED VIEW auto").collect()
    spark.sql(f"DROP DATABASE {database} CASCADE")
    return {
        "number": number,
        "query": name,
        "format": using,
        "rows": rows,
        "share": share,
        "warm": warm,
        **took,
        "way": last[0] if last else "",
        "reason": last[1] if last else "",
        "right": right,
    }


def _change(spark: SparkSession, name: str, share: float, turn: int) -> None:
    """Update a share of the facts: whole days if the table is partitioned, else any rows."""
    hashed = f"hash(day, {turn})" if name == "days" else f"hash(id, {turn})"
    spark.sql(
        f"UPDATE facts SET amount = amount + 1 WHERE pmod({hashed}, 1000000) < {share * 1e6}"
    )
    for table in ("facts", "customers"):
        spark.table(table).write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
