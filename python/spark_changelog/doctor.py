# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Checks of an installation: versions, extension, state store and connectors of a session."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

import pyspark
from pyspark.sql import SparkSession

import spark_changelog
from spark_changelog._arguments import checked
from spark_changelog._text import quoted
from spark_changelog.session import EXTENSION, STATE_STORE, has_extension, jar_name

LOWEST_JAVA = 17
SCALA = "2.13"
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
DELTA_LINES = ("4.1", "4.2")  # with a release of Delta
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"

# A connector's name, a class of it, and its artifact.
CONNECTORS = (
    (
        "Kafka",
        "org.apache.spark.sql.kafka010.KafkaSourceProvider",
        "org.apache.spark:spark-sql-kafka-0-10_2.13",
    ),
    ("PostgreSQL", "org.postgresql.Driver", "org.postgresql:postgresql"),
    ("MariaDB", "org.mariadb.jdbc.Driver", "org.mariadb.jdbc:mariadb-java-client"),
    ("MySQL", "com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j"),
    (
        "Iceberg",
        "org.apache.iceberg.spark.SparkCatalog",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13",
    ),
)

State = Literal["ok", "absent", "warning", "wrong"]


@dataclass(frozen=True)
class Finding:
    """The result of one check. As a string, it is the line that the command prints.

    Attributes
    ----------
    name : str
        The checked part, such as ``Java``.
    state : str
        ``ok``, ``absent`` for a connector that is not installed, ``warning``, or ``wrong``.
    found : str
        The version or value found.
    advice : str
        The action to take, empty if there is none.
    """

    name: str
    state: State
    found: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.state:<8}{self.name}: {self.found}{self.advice and '. '}{self.advice}"


@checked
def doctor(spark: SparkSession | None = None) -> list[Finding]:
    """Check the installation that a session runs on.

    Parameters
    ----------
    spark : SparkSession, optional
        The active session by default.

    Returns
    -------
    list of Finding
        One finding per check. Nothing is wrong unless a finding has the state ``wrong``.

    Examples
    --------
    >>> for finding in doctor(spark):
    ...     if finding.state == "wrong":
    ...         print(finding)
    """
    session = SparkSession.active() if spark is None else spark
    return [python(), *_Checks(session).findings()]


def python() -> Finding:
    """Return the finding about this Python, whose version the package's metadata checks."""
    return Finding("Python", "ok", platform.python_version())


def java_command() -> Finding | None:
    """Return a finding if PySpark can't start a new enough Java."""
    home = os.environ.get("JAVA_HOME")
    command = f"{home}/bin/java" if home else "java"
    advice = f"Install Java {LOWEST_JAVA} or newer, and set JAVA_HOME to its folder"
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return Finding("Java", "wrong", f"{command} can't be run ({error})", advice)
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    if found and int(found[1]) < LOWEST_JAVA:
        return Finding("Java", "wrong", f"{command} is Java {found[1]}", advice)
    return None


class _Checks:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._line = ".".join(spark.version.split(".")[:2])

    def findings(self) -> Iterator[Finding]:
        yield Finding("Java", "ok", self._call("java.lang.System", "getProperty", "java.version"))
        yield self._spark_version()
        yield self._scala()
        yield self._jar()
        yield from self._extensions()
        yield self._state_store()
        yield self._delta()
        for name, class_name, artifact in CONNECTORS:
            yield self._connector(name, class_name, artifact)

    def _spark_version(self) -> Finding:
        found = f"{self._spark.version}, PySpark {pyspark.__version__}"
        if pyspark.__version__.startswith(f"{self._line}."):
            return Finding("Spark", "ok", found)
        advice = (
            "The jar in the package is chosen by PySpark's version. Unset SPARK_HOME, or install "
            f"pyspark=={self._spark.version}"
        )
        return Finding("Spark", "wrong", found, advice)

    def _scala(self) -> Finding:
        found = self._call("scala.util.Properties", "versionNumberString")
        if found.startswith(f"{SCALA}."):
            return Finding("Scala", "ok", found)
        return Finding("Scala", "wrong", found, f"Use a Spark built for Scala {SCALA}")

    def _jar(self) -> Finding:
        """Compare the version and line of the jar with those of the package and the session."""
        version = spark_changelog.__version__
        expected = f"{jar_name(self._line)}-{version.replace('.dev0', '-SNAPSHOT')}.jar"
        class_path = (
            f"{self._setting('spark.jars')},{self._setting('spark.driver.extraClassPath')}"
        )
        names = {PurePosixPath(entry.strip()).name for entry in re.split("[,:]", class_path)}
        jars = sorted(name for name in names if re.match(r"(.*_)?spark-changelog_.*\.jar$", name))
        package = f"package {version}"
        if not jars:
            if self._has_class(EXTENSION):
                return Finding("Jar", "ok", f"on the class path, {package}")
            advice = "Start the session with spark_changelog.configure, or set spark.jars"
            return Finding("Jar", "wrong", f"none in the session, {package}", advice)
        found = f"{', '.join(jars)}, {package}"
        if len(jars) == 1 and jars[0].endswith(expected):
            return Finding("Jar", "ok", found)
        return Finding("Jar", "wrong", found, f"Put only {expected} into spark.jars")

    def _extensions(self) -> Iterator[Finding]:
        setting = self._setting("spark.sql.extensions")
        names = [name.strip() for name in setting.split(",") if name.strip()]
        found = ", ".join(names) or "none"
        absent = [name for name in names if not self._has_class(name)]
        if not has_extension(self._spark):
            advice = f"Start the session with {EXTENSION} in spark.sql.extensions"
            yield Finding("Extensions", "wrong", found, advice)
        elif names and names[-1] != EXTENSION:
            advice = f"Put {EXTENSION} last: an earlier parser wins over a later one"
            yield Finding("Extensions", "warning", found, advice)
        else:
            yield Finding("Extensions", "ok", found)
        for name in absent:
            advice = "Spark ignores it: add its jar to spark.jars, or remove the name"
            yield Finding("Extension", "wrong", f"{name} is not on the class path", advice)

    def _state_store(self) -> Finding:
        provider = str(self._spark.conf.get(PROVIDER))
        if not self._has_class(provider):
            return Finding("State store", "wrong", f"{provider} is not on the class path")
        if provider == STATE_STORE and self._spark.conf.get(FORMAT) == "2":
            advice = f"Set {FORMAT} to 1, or {PROVIDER} to {ROCKSDB}"
            return Finding("State store", "wrong", f"{provider} with {FORMAT} 2", advice)
        if provider.endswith(".HDFSBackedStateStoreProvider"):
            advice = f"For more than little state, set {PROVIDER} to {STATE_STORE} or {ROCKSDB}"
            return Finding("State store", "warning", provider, advice)
        return Finding("State store", "ok", provider)

    def _delta(self) -> Finding:
        is_there = self._has_class(DELTA_EXTENSION)
        if self._line not in DELTA_LINES:
            none = f"no release for Spark {self._line}"
            advice = "Store views USING parquet"
            if not is_there:
                return Finding("Delta", "absent", none, advice)
            return Finding("Delta", "wrong", f"on the class path, but {none}", advice)
        artifact = f"io.delta:delta-spark_{self._line}_2.13"
        if not is_there:
            return Finding("Delta", "absent", "not installed", _to_add(artifact))
        version = self._call("io.delta.package", "VERSION")
        catalog = "spark.sql.catalog.spark_catalog"
        for setting, value in ("spark.sql.extensions", DELTA_EXTENSION), (catalog, DELTA_CATALOG):
            if value not in self._setting(setting):
                advice = f"Set {value} in {setting}"
                return Finding("Delta", "wrong", f"{version}, not set up", advice)
        return Finding("Delta", "ok", version)

    def _connector(self, name: str, class_name: str, artifact: str) -> Finding:
        if self._has_class(class_name):
            return Finding(name, "ok", "found")
        return Finding(name, "absent", "not installed", _to_add(artifact))

    def _setting(self, name: str) -> str:
        return str(self._spark.conf.get(name, "") or "")

    def _call(self, class_name: str, method: str, *arguments: str) -> str:
        """Call a static method in the session's JVM."""
        words = ", ".join(map(quoted, (class_name, method, *arguments)))
        return str(self._spark.sql(f"SELECT reflect({words})").collect()[0][0])

    def _has_class(self, name: str) -> bool:
        """Tell whether a class is on the session's class path."""
        return self._call("org.apache.spark.util.Utils", "classIsLoadable", name) == "true"


def _to_add(artifact: str) -> str:
    return f"To use it, add {artifact} to spark.jars.packages"
