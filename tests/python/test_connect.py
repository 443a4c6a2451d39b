# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Spark Connect: a client without a JVM, and a server with the jar and the extension."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from processes import run_script

pytest.importorskip("grpc")

# One server for every part. Each part prints its name and its result.
SCRIPT = """
import warnings

from pyspark.sql import SparkSession, functions as F

builder = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2")
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    spark = changelog.configure(builder).getOrCreate()
    again = changelog.configure(SparkSession.builder.remote("local[2]")).getOrCreate()
assert again is spark
assert "connect" in type(spark).__module__
folder = sys.argv[2]
raw = spark.readStream.schema("op STRING, city STRING").json(folder + "/in")
raw.createOrReplaceTempView("r")
table = changelog.from_changelog(raw, change_type="op")

def run(name, changes):
    writer = changes.writeStream.option("checkpointLocation", f"{folder}/{name}/checkpoint")
    writer.trigger(availableNow=True).start(f"{folder}/{name}/out").awaitTermination()
    return sorted(map(tuple, spark.read.parquet(f"{folder}/{name}/out").collect()))

def session():
    return [str(warning.message) for warning in warned if "CONFIG" in str(warning.message)]

def conf():
    settings = changelog.ChangelogConf(spark)
    settings.share_equal_parts = False
    return settings.share_equal_parts, settings.aggregate_head_size

def sql_text():
    return run("sql", spark.sql('''
        WITH t AS (SELECT * FROM from_changelog(TABLE(r), change_type => 'op'))
        SELECT * FROM to_changelog(TABLE(SELECT city, count(*) AS n FROM t GROUP BY city))
    '''))

def functions():
    counts = table.groupBy("city").agg(F.count("*").alias("n"))
    return run("functions", changelog.to_changelog(counts))

def batch():
    changes = spark.createDataFrame([("+I", 1), ("+I", 2), ("-D", 1)], "op STRING, id INT")
    kept = changelog.from_changelog(changes, change_type="op")
    return [tuple(kept.first()), tuple(changelog.to_changelog(kept).first())]

def explain():
    return changelog.explain(table.groupBy("city").count(), format="json")["mode"]

def running():
    changes = changelog.to_changelog(table.groupBy("city").count())
    writer = changes.writeStream.format("noop")
    query = writer.option("checkpointLocation", folder + "/running").start()
    query.processAllAvailable()
    while query.status["isTriggerActive"]:
        pass  # the progress report comes after the end of the batch
    tree = changelog.explain(query, format="json")
    query.stop()
    return tree["children"][0]["numbers"]["stateRows"]

def error():
    changelog.from_changelog(raw, change_type="no_such_column").schema

for part in (session, conf, sql_text, functions, batch, explain, running, error):
    try:
        result = part()
    except Exception as failure:
        result = f"{type(failure).__name__}: {failure}"
    print((part.__name__, result))
"""


@pytest.fixture(scope="module")
def found(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Run the script, and return the result of each part."""
    folder = tmp_path_factory.mktemp("connect")
    changes = [("+I", "Oslo"), ("+I", "Rome"), ("-D", "Oslo")]
    lines = [json.dumps({"op": op, "city": city}) for op, city in changes]
    (folder / "in").mkdir()
    (folder / "in" / "0.json").write_text("\n".join(lines))
    # As in Spark's tests, the server takes any free port.
    printed = run_script(SCRIPT, jar, folder, SPARK_TESTING="1")
    return dict(ast.literal_eval(line) for line in printed.splitlines() if line)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("session", []),  # no warnings about settings that can't change
        ("conf", (False, 16)),
        ("sql_text", [("Rome", 1, "insert")]),
        ("functions", [("Rome", 1, "insert")]),
        ("batch", [(2,), (2, "insert")]),
        ("explain", ["I", "UB", "UA", "D"]),
        ("running", 1),
    ],
)
def test_connect(found: dict[str, object], part: str, expected: object) -> None:
    assert found[part] == expected


def test_an_error_keeps_its_condition(found: dict[str, object]) -> None:
    assert str(found["error"]).startswith("AnalysisException: [CHANGELOG_COLUMN_NOT_FOUND]")
