# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Counts words, and the words with each count, while words are inserted and deleted.

Run ``python examples/word_count.py`` in an environment with spark-changelog.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import spark_changelog as changelog

builder = SparkSession.builder.master("local[2]")
spark = changelog.configure(builder).getOrCreate()
inbox = Path(tempfile.mkdtemp())

# Each line of a file is a change: an insert (+I) or a delete (-D) of a word.
raw = spark.readStream.schema("op STRING, word STRING").csv(str(inbox))
words = changelog.from_changelog(raw, change_type="op")
counts = words.groupBy("word").agg(F.count("*").alias("times"))
frequencies = counts.groupBy("times").agg(F.count("*").alias("words"))
changelog.explain(frequencies)


def show(batch: DataFrame, batch_id: int) -> None:
    print(f"batch {batch_id}")
    batch.orderBy("times", "words").show()


query = changelog.to_changelog(frequencies).writeStream.foreachBatch(show).start()
(inbox / "1.csv").write_text("+I,to\n+I,be\n+I,or\n+I,not\n+I,to\n+I,be\n")
query.processAllAvailable()
(inbox / "2.csv").write_text("-D,to\n-D,or\n")
query.processAllAvailable()
query.stop()
spark.stop()
