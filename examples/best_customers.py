# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The two best customers of a shop, maintained from Debezium's change events.

Run ``python examples/best_customers.py`` in an environment with spark-changelog. This example
reads events from files. For Kafka, use ``spark.readStream.format("kafka")`` in place of ``text``.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import spark_changelog as changelog

builder = SparkSession.builder.master("local[2]")
spark = changelog.configure(builder).getOrCreate()
inbox = Path(tempfile.mkdtemp())


def event(op: str, before: dict[str, object] | None, after: dict[str, object] | None) -> str:
    return json.dumps({"op": op, "before": before, "after": after})


def order(order_id: int, customer: str, amount: int) -> dict[str, object]:
    return {"order_id": order_id, "customer": customer, "amount": amount}


events = spark.readStream.text(str(inbox))
orders = changelog.from_debezium(
    events, "order_id INT, customer STRING, amount INT", key="order_id"
)
totals = orders.groupBy("customer").agg(F.sum("amount").alias("total"))
place = F.row_number().over(Window.orderBy(F.desc("total"), "customer"))
best = totals.withColumn("place", place).where("place <= 2")

query = (
    changelog.to_changelog(best)
    .writeStream.format("changelog-memory")
    .queryName("best_customers")
    .option("checkpointLocation", tempfile.mkdtemp())
    .start()
)

(inbox / "1.json").write_text(
    "\n".join(
        [
            event("c", None, order(1, "Ada", 30)),
            event("c", None, order(2, "Ben", 20)),
            event("c", None, order(3, "Cyd", 10)),
        ]
    )
)
query.processAllAvailable()
spark.table("best_customers").orderBy("place").show()

# Ada's order is cancelled, and the amount of Cyd's order grows.
(inbox / "2.json").write_text(
    "\n".join(
        [
            event("d", order(1, "Ada", 30), None),
            event("u", order(3, "Cyd", 10), order(3, "Cyd", 25)),
        ]
    )
)
query.processAllAvailable()
spark.table("best_customers").orderBy("place").show()
query.stop()
spark.stop()
