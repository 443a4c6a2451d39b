# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Draws a running query: the plan with numbers, and the tab of Spark's web UI.

``dev/pictures --run`` calls this script.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spark_changelog as changelog

DOCS = Path(__file__).resolve().parent.parent / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")

# The changes of each table, batch by batch.
ORDERS = [
    "+I,1,1,30\n+I,2,2,20\n+I,3,2,5\n+I,4,3,12\n",
    "-U,3,2,5\n+U,3,2,50\n-D,1,1,30\n+I,5,1,8\n+I,6,3,9\n",
]
CUSTOMERS = ["+I,1,Oslo\n+I,2,Rome\n+I,3,Rome\n", "-U,2,Rome\n+U,2,Bari\n"]

PER_CITY = """
    SELECT city, count(*) AS orders, sum(amount) AS total
    FROM orders JOIN customers ON orders.customer = customers.id
    GROUP BY city"""
LARGEST = """
    SELECT * FROM (SELECT *, row_number() OVER (ORDER BY amount DESC) AS place FROM orders)
    WHERE place <= 3"""


def tables(spark: SparkSession, folder: Path) -> None:
    """Write the changes, and create the temporary views ``orders`` and ``customers``."""
    columns = {"orders": "id INT, customer INT, amount INT", "customers": "id INT, city STRING"}
    for name, changes in ("orders", ORDERS), ("customers", CUSTOMERS):
        inbox = folder / name
        inbox.mkdir()
        for number, lines in enumerate(changes):
            path = inbox / f"{number}.csv"
            path.write_text(lines)
            os.utime(path, (1_700_000_000 + number,) * 2)  # The source reads older files first.
        stream = spark.readStream.schema(f"op STRING, {columns[name]}")
        raw = stream.option("maxFilesPerTrigger", 1).csv(str(inbox))
        table = changelog.from_changelog(raw, change_type="op", key="id")
        table.createOrReplaceTempView(name)


def start(spark: SparkSession, name: str, sql: str, folder: Path) -> StreamingQuery:
    """Start a query, and wait for the end of all its batches."""
    writer = changelog.to_changelog(spark.sql(sql)).writeStream.format("noop").queryName(name)
    query = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}")).start()
    query.processAllAvailable()
    while query.status["isTriggerActive"]:
        time.sleep(0.01)  # The progress report comes after the end of the batch.
    return query


def plan_of(query: StreamingQuery) -> str:
    """Return the plan of a running query as SVG, with the numbers of the last batch."""
    return f"{changelog.explain(query, format='svg')}\n"


def photograph(address: str, path: Path) -> None:
    """Write a picture of a page, by the first installed browser."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"error: {path.name} needs one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += ["--window-size=1280,360", "--virtual-time-budget=5000"]
        options += [f"--user-data-dir={profile}", f"--screenshot={path}"]
        subprocess.run([browser, *options, address], check=True, timeout=120)


def main() -> None:
    """Run two queries, and draw the pictures."""
    os.environ["SPARK_USER"] = "shop"  # shown in the UI
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("shop")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    spark = changelog.configure(builder).getOrCreate()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        tables(spark, folder)
        queries = [
            start(spark, name, sql, folder)
            for name, sql in (("per_city", PER_CITY), ("largest_orders", LARGEST))
        ]
        (DOCS / "running.svg").write_text(plan_of(queries[0]))
        photograph(f"{spark.sparkContext.uiWebUrl}/changelog/", DOCS / "tab.png")
        for query in queries:
            query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
