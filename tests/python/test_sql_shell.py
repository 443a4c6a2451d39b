# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The jar alone is enough: spark-sql and spark-submit with two options, and no Python package."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyspark

from processes import run
from spark_changelog.session import EXTENSION

HOME = Path(pyspark.__file__).parent

RIDES = """
CREATE TEMPORARY VIEW rides AS SELECT * FROM VALUES
  ('+I', 1, 'Oslo'), ('+I', 2, 'Rome'), ('-U', 1, 'Oslo'), ('+U', 1, 'Rome')
  AS changes(op, id, city);
"""

JOB = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
folder = sys.argv[1]
raw = spark.readStream.schema("op STRING, city STRING").json(folder + "/in")
raw.createOrReplaceTempView("r")
changes = spark.sql('''
    SELECT * FROM to_changelog(TABLE(
      SELECT city, count(*) AS n FROM from_changelog(TABLE(r), 'op') GROUP BY city))
''')
query = changes.writeStream.option("checkpointLocation", folder + "/checkpoint").trigger(
    availableNow=True).start(folder + "/out")
query.awaitTermination()
print(sorted(map(tuple, spark.read.parquet(folder + "/out").collect())))
"""


def options(jar: Path, folder: Path, catalog: str = "in-memory") -> list[str | Path]:
    settings = {
        "spark.master": "local[2]",
        "spark.jars": str(jar),
        "spark.sql.extensions": EXTENSION,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": catalog,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    return [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]


ENVIRONMENT = {"SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable}


def sql(jar: Path, folder: Path, text: str, catalog: str = "in-memory") -> list[str]:
    """Run statements in the SQL shell, and return the printed lines."""
    script = folder / "script.sql"
    script.write_text(text)
    command = [HOME / "bin" / "spark-sql", *options(jar, folder, catalog), "-f", script]
    printed = run(command, folder, **ENVIRONMENT)
    return [line for line in printed.splitlines() if line.strip()]


def test_the_sql_shell(jar: Path, tmp_path: Path) -> None:
    query = "SELECT city, count(*) AS n FROM from_changelog(TABLE(rides), 'op') GROUP BY city"
    lines = sql(
        jar,
        tmp_path,
        f"""{RIDES}
        SELECT * FROM from_changelog(TABLE(rides), 'op') ORDER BY id;
        SELECT * FROM to_changelog(TABLE({query}), mode => 'retract');
        SELECT 'stock';
        EXPLAIN CHANGELOG SELECT * FROM to_changelog(TABLE({query}));
        """,
    )
    assert lines[:4] == ["1\tRome", "2\tRome", "Rome\t2\tinsert", "stock"]
    assert any("Aggregate" in line for line in lines[4:])


def test_views_outlive_the_sql_shell(jar: Path, tmp_path: Path) -> None:
    query = """
        SELECT city, count(*) AS n
        FROM from_changelog(TABLE(SELECT * FROM STREAM rides), 'op') GROUP BY city"""
    lines = sql(
        jar,
        tmp_path,
        f"""
        CREATE TABLE rides (op STRING, city STRING) USING json;
        INSERT INTO rides VALUES ('+I', 'Oslo'), ('+I', 'Oslo'), ('+I', 'Rome');
        CREATE MATERIALIZED VIEW visits AS SELECT DISTINCT city FROM STREAM rides;
        CREATE STREAMING TABLE arrivals AS SELECT city FROM STREAM rides WHERE op = '+I';
        SELECT count(*) FROM arrivals;
        -- what there is
        CREATE OR REPLACE MATERIALIZED VIEW visits COMMENT 'by city' AS {query};
        SELECT * FROM visits ORDER BY city;
        DROP STREAMING TABLE arrivals;
        EXPLAIN CHANGELOG SELECT /*+ ROW_TTL(rides, '2h') */ city, count(*) FROM STREAM rides
        GROUP BY city;
        """,
        catalog="hive",
    )
    assert lines[:3] == ["3", "Oslo\t2", "Rome\t1"]
    assert any("retracted 2.00 h after the last change" in line for line in lines[3:])
    lines = sql(
        jar,
        tmp_path,
        """
        INSERT INTO rides VALUES ('-D', 'Oslo'), ('-D', 'Rome');
        REFRESH MATERIALIZED VIEW visits;
        SELECT * FROM visits;
        VERIFY MATERIALIZED VIEW visits;
        DESCRIBE MATERIALIZED VIEW visits;
        DROP MATERIALIZED VIEW visits;
        SHOW MATERIALIZED VIEWS;
        """,
        catalog="hive",
    )
    facts = dict(line.split("\t", 1) for line in lines if "\t" in line)
    assert lines[0] == "Oslo\t1"
    assert facts["Plan"] == "incremental, [I,UB,UA,D], key (city)"
    assert "incremental, 2 rows read" in facts["Last refresh"]
    assert "equal, 1 rows compared" in facts["Last verification"]
    assert not any("visits" in line for line in lines)


def test_a_table_of_hive_is_compared_with_a_copy(jar: Path, tmp_path: Path) -> None:
    lines = sql(
        jar,
        tmp_path,
        """
        CREATE TABLE rides (city STRING, fare INT) STORED AS TEXTFILE;
        INSERT INTO rides VALUES ('Oslo', 1), ('Oslo', 2), ('Rome', 7);
        CREATE MATERIALIZED VIEW fares USING parquet AS
        SELECT city, sum(fare) AS total FROM rides GROUP BY city;
        INSERT OVERWRITE rides VALUES ('Oslo', 1), ('Rome', 7), ('Bern', 3);
        REFRESH MATERIALIZED VIEW fares INCREMENTAL;
        SELECT * FROM fares ORDER BY city;
        VERIFY MATERIALIZED VIEW fares;
        """,
        catalog="hive",
    )
    assert lines == ["Bern\t3", "Oslo\t1", "Rome\t7"]


def test_files_are_followed_by_their_list(jar: Path, tmp_path: Path) -> None:
    lines = sql(
        jar,
        tmp_path,
        """
        CREATE TABLE rides (city STRING, fare INT) USING parquet;
        CREATE TABLE cities (city STRING, country STRING) USING orc;
        INSERT INTO rides VALUES ('Oslo', 1), ('Rome', 7);
        INSERT INTO cities VALUES ('Oslo', 'NO'), ('Rome', 'IT');
        CREATE MATERIALIZED VIEW fares AS
        SELECT country, sum(fare) AS total FROM rides JOIN cities USING (city) GROUP BY ALL;
        INSERT INTO rides VALUES ('Oslo', 2), ('Bern', 3);
        INSERT INTO cities VALUES ('Bern', 'CH');
        REFRESH MATERIALIZED VIEW fares INCREMENTAL STRICT;
        SELECT * FROM fares ORDER BY country;
        VERIFY MATERIALIZED VIEW fares;
        DROP MATERIALIZED VIEW fares;
        """,
        catalog="hive",
    )
    assert lines == ["CH\t3", "IT\t7", "NO\t3"]


def test_spark_submit(jar: Path, tmp_path: Path) -> None:
    changes = [("+I", "Oslo"), ("+I", "Rome"), ("-D", "Oslo")]
    lines = [json.dumps({"op": op, "city": city}) for op, city in changes]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text("\n".join(lines))
    job = tmp_path / "job.py"
    job.write_text(JOB)
    command = [HOME / "bin" / "spark-submit", *options(jar, tmp_path), job, tmp_path]
    printed = run(command, tmp_path, **ENVIRONMENT)
    assert printed.strip() == "[('Rome', 1, 'insert')]"
