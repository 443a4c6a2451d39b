# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Common fixtures of the Python tests: sbt's jar, and one session with the jar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_changelog.session
from processes import JARS
from share import IS_ALL, of_modules
from spark_changelog.session import (
    EXPLAIN_PROVIDER,
    EXTENSION,
    FILE_MANAGER,
    jar_name,
    spark_line,
)

# A test runs new code for a short time. Fast compilation, a simple collector and a large initial
# heap save time, here and in the processes of tests.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m "
    "-Xms600m -Xmn300m -XX:MetaspaceSize=300m",
)

# By default the test kit runs no random batches. Tests pass the number themselves.
os.environ.setdefault("CHANGELOG_TEST_CUTS", "0")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep only the tests of this run's share."""
    items[:] = of_modules(items)


@pytest.fixture(scope="session")
def jar() -> Iterator[Path]:
    """Find the jar built by ``dev/sbt package``, and make `configure` use it."""
    jars = sorted(JARS.glob(f"{jar_name(spark_line())}-*.jar"))
    jars = [path for path in jars if not path.stem.endswith(("-tests", "-sources", "-javadoc"))]
    if len(jars) != 1:
        raise FileNotFoundError(f"one jar is expected in {JARS}, found {jars or 'none'}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_changelog.session, "package_jar", lambda: jars[0])
        yield jars[0]


@pytest.fixture(scope="session")
def spark(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start the only session of this process."""
    # Python workers need the packages of this environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("spark-changelog tests")
        .config("spark.jars", str(jar))
        .config("spark.sql.extensions", EXTENSION)
        .config("spark.sql.extendedExplainProviders", EXPLAIN_PROVIDER)
        .config("spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        # For few rows, compiling takes longer than running.
        .config("spark.sql.codegen.wholeStage", IS_ALL)
        .config("spark.sql.codegen.factoryMode", "FALLBACK" if IS_ALL else "NO_CODEGEN")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def feed(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function to write one batch of JSON lines into the folder of a file source."""
    folder = tmp_path / "feed"
    folder.mkdir()

    def write(lines: str) -> Path:
        number = len(list(folder.glob("*.json")))
        (folder / f"{number:04}.json").write_text(lines)
        return folder

    return write
