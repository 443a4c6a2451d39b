# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The session that a function works in."""

from __future__ import annotations

from pyspark.sql import SparkSession


def given_or_active(spark: SparkSession | None) -> SparkSession:
    """Return the session that was given, or else the active one."""
    return SparkSession.active() if spark is None else spark
