# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Spark Connect: a client without a JVM, and a server that has the jar and the extension."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from processes import run_script

pytest.importorskip("grpc")

START = """
from pyspark.sql import SparkSession, functions as F

builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
spark = changelog.configure(builder).getOrCreate()
assert "connect" in type(spark).__module__
folder = sys.argv[2]
raw = spark.readStream.schema("op STRING, city STRING").json(folder + "/in")

def run(changes):
    query = changes.writeStream.option("checkpointLocation", folder + "/checkpoint").trigger(
        availableNow=True).start(folder + "/out")
    query.awaitTermination()
    print(sorted(map(tuple, spark.read.parquet(folder + "/out").collect())))
"""

SQL_TEXT = """
raw.createOrReplaceTempView("r")
run(spark.sql('''
    WITH t AS (SELECT * FROM from_changelog(TABLE(r), change_type => 'op'))
    SELECT * FROM to_changelog(TABLE(SELECT city, count(*) AS n FROM t GROUP BY city))
'''))
"""

FUNCTIONS = """
table = changelog.from_changelog(raw, change_type="op")
run(changelog.to_changelog(table.groupBy("city").agg(F.count("*").alias("n"))))
"""

BATCH = """
changes = spark.createDataFrame([("+I", 1), ("+I", 2), ("-D", 1)], "op STRING, id INT")
table = changelog.from_changelog(changes, change_type="op")
print(table.collect())
print(changelog.to_changelog(table).collect())
"""

EXPLAIN = """
counts = changelog.from_changelog(raw, "op").groupBy("city").count()
print(changelog.explain(counts, format="json")["mode"])
"""

CONF = """
conf = changelog.ChangelogConf(spark)
conf.two_phase = False
print(conf.two_phase, conf.aggregate_head_size)
"""


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        (SQL_TEXT, "[('Rome', 1, 'insert')]"),
        (FUNCTIONS, "[('Rome', 1, 'insert')]"),
        (BATCH, "[Row(id=2)]\n[Row(id=2, _change_type='insert')]"),
        (EXPLAIN, "['I', 'UB', 'UA', 'D']"),
        (CONF, "False 16"),
    ],
    ids=["sql text", "functions", "batch", "explain", "conf"],
)
def test_connect(jar: Path, tmp_path: Path, script: str, printed: str) -> None:
    changes = [("+I", "Oslo"), ("+I", "Rome"), ("-D", "Oslo")]
    lines = [json.dumps({"op": op, "city": city}) for op, city in changes]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text("\n".join(lines))
    # Spark's tests let the server take any free port; so do ours.
    result = run_script(START + script, jar, tmp_path, SPARK_TESTING="1")
    assert result.strip() == printed
