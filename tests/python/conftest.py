# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""What every Python test stands on: the jar sbt built, and one session with it."""

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

# Short runs of ever new code, here and in the processes that tests start: neither much
# optimization nor a busy collector pays off, and there is room from the beginning.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m "
    "-Xms600m -Xmn300m -XX:MetaspaceSize=300m",
)

# A test says itself how often the test kit cuts its changelog at random.
os.environ.setdefault("CHANGELOG_TEST_CUTS", "0")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests that are not in this run's share."""
    items[:] = of_modules(items)


@pytest.fixture(scope="session")
def jar() -> Iterator[Path]:
    """Find the jar that ``dev/sbt package`` leaves, and let `configure` hand it over."""
    jars = sorted(JARS.glob(f"{jar_name(spark_line())}-*.jar"))
    jars = [path for path in jars if not path.stem.endswith(("-tests", "-sources", "-javadoc"))]
    if len(jars) != 1:
        raise FileNotFoundError(f"one jar is expected in {JARS}, found {jars or 'none'}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_changelog.session, "package_jar", lambda: jars[0])
        yield jars[0]


@pytest.fixture(scope="session")
def spark(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start the one session in this process."""
    # functions run in a Python that has what this one has
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
        # few rows: code takes longer to compile than to run
        .config("spark.sql.codegen.wholeStage", IS_ALL)
        .config("spark.sql.codegen.factoryMode", "FALLBACK" if IS_ALL else "NO_CODEGEN")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def feed(tmp_path: Path) -> Callable[[str], Path]:
    """Write one batch of JSON lines into a folder that a file source reads."""
    folder = tmp_path / "feed"
    folder.mkdir()

    def write(lines: str) -> Path:
        number = len(list(folder.glob("*.json")))
        (folder / f"{number:04}.json").write_text(lines)
        return folder

    return write
