# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`doctor` names what is wrong with an installation, and what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import spark_changelog
from processes import SOURCE, WITH_JAR
from spark_changelog.doctor import DELTA_EXTENSION, Finding, doctor
from spark_changelog.session import EXTENSION, STATE_STORE

COMMAND = WITH_JAR + "from spark_changelog.__main__ import main; sys.exit(main(sys.argv[2:]))"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


def found(spark: SparkSession) -> dict[str, Finding]:
    return {finding.name: finding for finding in doctor(spark)}


@pytest.fixture(autouse=True)
def _version_of_the_jar(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the sources' version: another one may be installed beside them."""
    version = jar.stem.rpartition("_2.13-")[2].replace("-SNAPSHOT", ".dev0")
    monkeypatch.setattr(spark_changelog, "__version__", version)


def test_nothing_is_wrong_with_a_session_that_has_all_it_needs(spark: SparkSession) -> None:
    findings = found(spark)
    assert {finding.state for finding in findings.values()} <= {"ok", "absent", "warning"}
    for name in "Python", "Java", "Spark", "Scala", "Jar", "Extensions":
        assert findings[name].state == "ok", findings[name]
    assert findings["Spark"].found == f"{spark.version}, PySpark {pyspark.__version__}"
    assert findings["Extensions"].found == EXTENSION
    assert findings["PostgreSQL"].state == "absent"
    assert "org.postgresql:postgresql" in str(findings["PostgreSQL"])


def test_spark_of_another_line_than_pyspark_is_wrong(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    finding = found(spark)["Spark"]
    assert finding.state == "wrong"
    assert f"pyspark=={spark.version}" in finding.advice


def test_a_jar_of_another_version_or_a_second_jar_is_wrong(
    spark: SparkSession, jar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_changelog, "__version__", "9.0.0")
    finding = found(spark)["Jar"]
    assert finding.state == "wrong"
    assert jar.name in finding.found
    assert "-9.0.0.jar" in finding.advice


@pytest.mark.parametrize(
    ("provider", "version", "state"),
    [
        (STATE_STORE, "1", "ok"),
        (STATE_STORE, "2", "wrong"),
        (
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
            "1",
            "warning",
        ),
        ("com.example.NoProvider", "1", "wrong"),
    ],
)
def test_state_stores_that_fail_or_do_not_scale_are_told(
    spark: SparkSession, provider: str, version: str, state: str
) -> None:
    spark.conf.set(PROVIDER, provider)
    spark.conf.set(FORMAT, version)
    try:
        finding = found(spark)["State store"]
    finally:
        spark.conf.unset(PROVIDER)
        spark.conf.unset(FORMAT)
    assert (finding.state, provider in finding.found) == (state, True)
    assert (finding.advice == "") == (state == "ok" or "example" in provider)


def command(jar: Path, folder: Path, *options: str, **environment: str) -> tuple[int, str]:
    """Run the command, and return its exit code and its output."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, jar, "doctor", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_command_tells_extensions_that_are_missing_or_in_the_wrong_order(
    jar: Path, tmp_path: Path
) -> None:
    extensions = f"spark.sql.extensions={EXTENSION},{DELTA_EXTENSION}"
    code, printed = command(
        jar, tmp_path, "--json", "--conf", "spark.master=local[1]", "--conf", extensions
    )
    findings = [Finding(**finding) for finding in json.loads(printed)]
    states = {finding.name: finding for finding in findings}
    assert code == 1
    assert states["Extensions"].state == "warning"
    assert "last" in states["Extensions"].advice
    assert states["Extension"].state == "wrong"
    assert DELTA_EXTENSION in states["Extension"].found
    assert states["State store"].found == STATE_STORE


def test_the_command_tells_that_there_is_no_java(jar: Path, tmp_path: Path) -> None:
    code, printed = command(jar, tmp_path, JAVA_HOME=str(tmp_path))
    assert code == 1
    last = printed.splitlines()[-1]
    assert last.startswith(f"wrong   Java: {tmp_path}/bin/java can't be run")
    assert "JAVA_HOME" in last
