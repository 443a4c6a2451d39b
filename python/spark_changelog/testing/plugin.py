# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Fixtures and options for pytest, found through the package's entry point."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for runs over random batches."""
    group = parser.getgroup("changelog", "tests of changelog queries")
    group.addoption(
        "--changelog-cuts",
        type=int,
        metavar="N",
        help="number of runs of each query over random batches (default: 1)",
    )
    group.addoption(
        "--changelog-seed", type=int, metavar="N", help="random seed of the first such run"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set the options as environment variables, for tests that call the checks directly."""
    for name in "cuts", "seed":
        given = config.getoption(f"changelog_{name}")
        if given is not None:
            os.environ[f"CHANGELOG_TEST_{name.upper()}"] = str(given)


@pytest.fixture(scope="session")
def changelog_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start a small local session with the extension, and stop the session at the end."""
    from pyspark.sql import SparkSession

    from spark_changelog import configure

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("changelog tests")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
    )
    session = configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def changelog_check(changelog_session: SparkSession) -> Callable[..., Any]:
    """Return `spark_changelog.testing.check` in that session."""
    from spark_changelog.testing import check

    return partial(check, changelog_session)


@pytest.fixture
def changelog_check_query(changelog_session: SparkSession) -> Callable[..., Any]:
    """Return `spark_changelog.testing.check_query` in that session."""
    from spark_changelog.testing import check_query

    return partial(check_query, changelog_session)
