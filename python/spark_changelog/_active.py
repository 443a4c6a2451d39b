# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The session for functions with an optional session argument."""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_changelog.session import check_extension


def given_or_active(spark: SparkSession | None) -> SparkSession:
    """Return the given session, by default the active session."""
    return SparkSession.active() if spark is None else spark


def sql(spark: SparkSession | None, text: str, **frames: Any) -> DataFrame:
    """Run a statement in a session, and raise a helpful error if the extension is missing."""
    session = given_or_active(spark)
    try:
        return session.sql(text, **frames)
    except PySparkException:
        check_extension(session)
        raise
