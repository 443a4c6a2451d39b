# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The configuration of a Spark session with the jar and the extension."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from spark_changelog._arguments import checked
from spark_changelog._jvm import add_to_class_path, is_running, running_setting
from spark_changelog._options import (
    add_submit_option,
    append_option,
    default_setting,
    extend_submit_args,
    sets_option,
)

MAIN_LINE = "4.2"  # the Spark line without its number in the jar's name
EXTENSION = "io.sparkchangelog.ChangelogExtensions"
STATE_STORE = "io.sparkchangelog.PagedStateStoreProvider"
FILE_MANAGER = "io.sparkchangelog.ChangelogCheckpointFileManager"
GENERATED_CLASSES = "5000"
STATIC = ("spark.jars", "spark.sql.extensions", "spark.sql.codegen.cache.maxEntries")
EXPLAIN_PROVIDER = "org.apache.spark.sql.changelog.explain.ChangelogExplainGenerator"


@checked
def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add changelog queries to the session that ``builder`` will create.

    Three settings get a further entry. Existing entries stay, from the builder, the running
    driver, ``PYSPARK_SUBMIT_ARGS`` or ``spark-defaults.conf``.

    - ``spark.jars``: the jar inside this package. Nothing is downloaded.
    - ``spark.sql.extensions``: the extension class.
    - ``spark.sql.extendedExplainProviders``: a provider to show changes in Spark's own EXPLAIN.

    Three settings get a default, unless they are already set:

    - ``spark.sql.streaming.stateStore.providerClass``: ``PagedStateStoreProvider``, which stores
      state in pages of memory. A query with a checkpoint keeps the provider of its first start.
    - ``spark.sql.streaming.checkpointFileManagerClass``: ``ChangelogCheckpointFileManager``,
      which writes checkpoints on local disks without a process per file, and on S3 without a
      rename.
    - ``spark.sql.codegen.cache.maxEntries``: 5000 generated classes in place of Spark's 100. A
      query with more classes than cache entries compiles its classes again in every batch.

    Parameters
    ----------
    builder : SparkSession.Builder
        The builder to configure. With ``remote("local")`` the new local server is configured.
        For a server elsewhere nothing is done: start the server with the jar and the extension.

    Returns
    -------
    SparkSession.Builder
        The same builder.

    Warns
    -----
    RuntimeWarning
        If a session without the extension is running, since ``getOrCreate`` returns this session.

    Examples
    --------
    >>> from pyspark.sql import SparkSession
    >>> builder = SparkSession.builder.config("spark.sql.extensions", "com.example.Mine")
    >>> configured = configure(builder)
    >>> configured._options["spark.sql.extensions"]
    'com.example.Mine,io.sparkchangelog.ChangelogExtensions'
    """
    remote = builder._options.get("spark.remote") or os.environ.get("SPARK_REMOTE", "")
    # These settings of a local server are fixed once the server has started.
    if remote.startswith("sc://") or (remote and "SPARK_LOCAL_REMOTE" in os.environ):
        return builder
    running = SparkSession.getActiveSession() if is_running() else None
    if running is not None and not has_extension(running):
        warnings.warn(_how_to_start(running), RuntimeWarning, stacklevel=3)
    jar = str(package_jar())
    add_to_class_path(jar)
    _append(builder, "spark.jars", jar)
    _append(builder, "spark.sql.extensions", EXTENSION)
    _append(builder, "spark.sql.extendedExplainProviders", EXPLAIN_PROVIDER)
    _set_default(builder, "spark.sql.streaming.stateStore.providerClass", STATE_STORE)
    _set_default(builder, "spark.sql.streaming.checkpointFileManagerClass", FILE_MANAGER)
    _set_default(builder, "spark.sql.codegen.cache.maxEntries", GENERATED_CLASSES)
    return builder


def has_extension(spark: SparkSession) -> bool:
    """Tell whether a session was started with the extension and the jar."""
    return spark.catalog.functionExists("to_changelog")


def check_extension(spark: SparkSession) -> None:
    """Raise RuntimeError if a session was started without the extension or the jar."""
    if not has_extension(spark):
        raise RuntimeError(_how_to_start(spark)) from None


def _how_to_start(spark: SparkSession) -> str:
    jar = Path(__file__).parent / "jars" / f"{jar_name(spark_line())}-*.jar"
    extensions = spark.conf.get("spark.sql.extensions", "") or "not set"
    return (
        "Start the Spark session with spark-changelog: call spark.stop(), then "
        "spark = spark_changelog.configure(SparkSession.builder).getOrCreate(). If something "
        "else starts the session, such as a notebook, spark-submit or a Spark Connect server, "
        f"let it set spark.jars to {jar} and spark.sql.extensions to {EXTENSION}. "
        "The running session has no spark-changelog extension: "
        f"its spark.sql.extensions is {extensions}."
    )


def package_jar() -> Path:
    """Return the path of this package's jar for the installed Spark."""
    folder = Path(__file__).parent / "jars"
    name = f"{jar_name(spark_line())}-*.jar"
    jars = sorted(folder.glob(name))
    if len(jars) != 1:
        found = ", ".join(sorted(jar.name for jar in folder.glob("*.jar"))) or "none"
        raise FileNotFoundError(
            f"one {name} is expected in {folder} for Spark {pyspark.__version__}, found {found}"
        )
    return jars[0]


def spark_line() -> str:
    """Return the line of the installed Spark, such as 4.2."""
    return ".".join(pyspark.__version__.split(".")[:2])


def jar_name(line: str) -> str:
    """Return the name of the jar for a line of Spark, without the version.

    Examples
    --------
    >>> jar_name("4.2"), jar_name("4.1")
    ('spark-changelog_2.13', 'spark-changelog_4.1_2.13')
    """
    return "spark-changelog_2.13" if line == MAIN_LINE else f"spark-changelog_{line}_2.13"


def _append(builder: SparkSession.Builder, name: str, value: str) -> None:
    _set(builder, name, append_option(_current(builder, name), value))
    # At the launch of a driver, a setting in these arguments wins over the builder's setting.
    if "PYSPARK_SUBMIT_ARGS" in os.environ:
        arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        os.environ["PYSPARK_SUBMIT_ARGS"] = extend_submit_args(arguments, name, value)


def _set_default(builder: SparkSession.Builder, name: str, value: str) -> None:
    if not _current(builder, name):
        _set(builder, name, value)


def _set(builder: SparkSession.Builder, name: str, value: str) -> None:
    """Set a setting in the builder, or for a Connect server's driver in the submit arguments."""
    remote = builder._options.get("spark.remote") or os.environ.get("SPARK_REMOTE")
    arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    is_settled = name in builder._options or sets_option(arguments, name) or is_running()
    if remote and name in STATIC and not is_settled:
        os.environ["PYSPARK_SUBMIT_ARGS"] = add_submit_option(arguments, name, value)
    else:
        builder.config(name, value)


def _current(builder: SparkSession.Builder, name: str) -> str | None:
    return builder._options.get(name) or running_setting(name) or default_setting(name)
