# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The only module that talks to the JVM through py4j: a driver that runs before our session.

That is so below ``spark-submit`` and after a stopped session; with Spark Connect there is none.
"""

from __future__ import annotations

import os
from typing import Any

from pyspark.util import is_remote_only


def running_setting(name: str) -> str | None:
    """Return what a running driver was started with, if there is one."""
    jvm = _running_jvm()
    if jvm is None:
        return None
    value: str = jvm.org.apache.spark.SparkConf().get(name, "")
    return value or None


def is_running() -> bool:
    """Tell whether a driver runs in this process, so that what it is started with is settled."""
    return _running_jvm() is not None


def add_to_class_path(jar: str) -> None:
    """Put ``jar`` on the class path of a running driver: ``spark.jars`` comes too late for it."""
    jvm = _running_jvm()
    if jvm is None:
        return
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if jvm.java.lang.ClassLoader.getSystemClassLoader().equals(loader):
        return  # not started by spark-submit: the application sets its own class path
    loader.addURL(jvm.java.io.File(jar).toURI().toURL())


def _running_jvm() -> Any:
    if is_remote_only():
        return None
    from pyspark import SparkContext

    if SparkContext._jvm is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
    return SparkContext._jvm
