# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Access through py4j to a driver JVM started before our session. Only this module uses py4j.

``spark-submit`` starts such a JVM, and a stopped session leaves its JVM running. A Spark Connect
client has no JVM.
"""

from __future__ import annotations

import os
from typing import Any

from pyspark.util import is_remote_only


def running_setting(name: str) -> str | None:
    """Return a setting of the running driver, None without a driver or without a value."""
    jvm = _running_jvm()
    if jvm is None:
        return None
    value: str = jvm.org.apache.spark.SparkConf().get(name, "")
    return value or None


def is_running() -> bool:
    """Tell whether a driver runs in this process, with static settings fixed at its start."""
    return _running_jvm() is not None


def add_to_class_path(jar: str) -> None:
    """Add ``jar`` to the class path of a running driver, which ignores ``spark.jars``."""
    jvm = _running_jvm()
    if jvm is None:
        return
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if jvm.java.lang.ClassLoader.getSystemClassLoader().equals(loader):
        return  # a JVM without spark-submit: the application sets its own class path
    loader.addURL(jvm.java.io.File(jar).toURI().toURL())


def _running_jvm() -> Any:
    if is_remote_only():
        return None
    from pyspark import SparkContext

    if SparkContext._jvm is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
    return SparkContext._jvm
