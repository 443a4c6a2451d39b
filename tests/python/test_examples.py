# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The files in examples/ run, and print the expected output."""

from __future__ import annotations

import py_compile
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from processes import ROOT, run_script
from test_sql_shell import sql

EXAMPLES = ROOT / "examples"

FIRST_BATCH = """
+-----+-----+------------+
|times|words|_change_type|
+-----+-----+------------+
|    1|    2|      insert|
|    2|    2|      insert|
+-----+-----+------------+
"""
SECOND_BATCH = """
+-----+-----+----------------+
|times|words|    _change_type|
+-----+-----+----------------+
|    2|    1|update_postimage|
|    2|    2| update_preimage|
+-----+-----+----------------+
"""


BEST_BEFORE = """
+--------+-----+-----+
|customer|total|place|
+--------+-----+-----+
|     Ada|   30|    1|
|     Ben|   20|    2|
+--------+-----+-----+
"""
BEST_AFTER = """
+--------+-----+-----+
|customer|total|place|
+--------+-----+-----+
|     Cyd|   25|    1|
|     Ben|   20|    2|
+--------+-----+-----+
"""


def test_best_customers(jar: Path, tmp_path: Path) -> None:
    path = str(EXAMPLES / "best_customers.py")
    printed = "\n" + run_script(f"import runpy\nrunpy.run_path({path!r})", jar, tmp_path)
    assert BEST_BEFORE in printed
    assert BEST_AFTER in printed


def test_word_count_in_python(jar: Path, tmp_path: Path) -> None:
    path = str(EXAMPLES / "word_count.py")
    printed = run_script(f"import runpy\nrunpy.run_path({path!r})", jar, tmp_path)
    assert printed.startswith("ToChangelog retract  [I,UB,UA,D]")
    assert FIRST_BATCH in printed
    assert SECOND_BATCH in printed


def test_the_dag_is_python(tmp_path: Path) -> None:
    path = EXAMPLES / "refresh" / "airflow_views.py"
    py_compile.compile(str(path), cfile=str(tmp_path / "dag.pyc"), doraise=True)


def test_word_count_in_sql(jar: Path, tmp_path: Path) -> None:
    lines = sql(jar, tmp_path, (EXAMPLES / "word_count.sql").read_text())
    assert lines[:2] == ["1\t2", "2\t1"]
    assert lines[2:4] == ["1\t2\tinsert", "2\t1\tinsert"]
    assert lines[4].startswith("ToChangelog")


@pytest.mark.parametrize("name", ["views.cron", "airflow_views.py"])
def test_the_statements_of_a_schedule(spark: SparkSession, name: str) -> None:
    text = (EXAMPLES / "refresh" / name).read_text()
    statements = re.findall(r"(?:REFRESH|VERIFY) [A-Za-z0-9. ]+", text)
    assert [statement.split()[0] for statement in statements] == ["REFRESH", "VERIFY"]
    spark.sql("CREATE DATABASE shop")
    try:
        spark.sql("CREATE TABLE shop.rides (city STRING, fare INT) USING parquet")
        spark.sql("INSERT INTO shop.rides VALUES ('Oslo', 5)")
        totals = "SELECT city, sum(fare) AS total FROM shop.rides GROUP BY city"
        spark.sql(f"CREATE MATERIALIZED VIEW shop.totals USING parquet AS {totals}")
        spark.sql("INSERT INTO shop.rides VALUES ('Rome', 7)")
        answers = [spark.sql(statement).collect() for statement in statements]
        assert answers[1] == []
        assert spark.table("shop.totals").count() == 2
    finally:
        spark.sql("DROP MATERIALIZED VIEW IF EXISTS shop.totals")
        spark.sql("DROP DATABASE shop CASCADE")


def test_every_example_is_run_by_a_test() -> None:
    tests = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "tests").rglob("*.scala")]
    sources = "\n".join(path.read_text() for path in tests)
    for path in EXAMPLES.iterdir():
        if path.is_dir() and not (path / "__main__.py").exists():
            named = [file.name for file in path.iterdir() if file.is_file()]
        else:
            named = [path.name]
        for name in named:
            assert name in sources, f"no test runs {path.name}/{name}"
