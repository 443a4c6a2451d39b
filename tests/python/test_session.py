# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""`configure` adds to options and keeps their entries, from any origin."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import spark_changelog.session
from processes import SOURCE, run, run_script
from spark_changelog import configure
from spark_changelog.session import (
    EXPLAIN_PROVIDER,
    EXTENSION,
    FILE_MANAGER,
    GENERATED_CLASSES,
    STATE_STORE,
    jar_name,
    package_jar,
    spark_line,
)

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
FILES = "spark.sql.streaming.checkpointFileManagerClass"
CLASSES = "spark.sql.codegen.cache.maxEntries"


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the driver of earlier tests, as in a new process."""
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)


def options(builder: SparkSession.Builder) -> dict[str, str]:
    return dict(builder._options)


def test_version() -> None:
    assert spark_changelog.__version__ == version("spark-changelog")


@pytest.mark.usefixtures("no_driver")
class TestConfigure:
    """The builder before the start of a driver."""

    def test_sets_jar_and_extension(self, jar: Path) -> None:
        assert options(configure(SparkSession.builder)) == {
            "spark.jars": str(jar),
            "spark.sql.extensions": EXTENSION,
            "spark.sql.extendedExplainProviders": EXPLAIN_PROVIDER,
            PROVIDER: STATE_STORE,
            FILES: FILE_MANAGER,
            CLASSES: GENERATED_CLASSES,
        }

    def test_keeps_what_the_builder_has(self, jar: Path) -> None:
        builder = SparkSession.builder.config("spark.jars", "a.jar,b.jar")
        builder.config("spark.sql.extensions", "com.example.Mine").config("spark.x", "1")
        builder.config(PROVIDER, "com.example.Provider").config(FILES, "com.example.Files")
        builder.config(CLASSES, "200")
        assert options(configure(builder)) == {
            "spark.jars": f"a.jar,b.jar,{jar}",
            "spark.sql.extensions": f"com.example.Mine,{EXTENSION}",
            "spark.sql.extendedExplainProviders": EXPLAIN_PROVIDER,
            "spark.x": "1",
            PROVIDER: "com.example.Provider",
            FILES: "com.example.Files",
            CLASSES: "200",
        }

    def test_adds_once(self, jar: Path) -> None:
        builder = configure(configure(SparkSession.builder))
        assert options(builder)["spark.jars"] == str(jar)

    def test_keeps_what_spark_defaults_has(
        self, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "spark-defaults.conf").write_text("spark.jars  theirs.jar\n")
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
        assert options(configure(SparkSession.builder))["spark.jars"] == f"theirs.jar,{jar}"

    def test_keeps_what_submit_arguments_have(
        self, jar: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars theirs.jar pyspark-shell")
        configure(SparkSession.builder)
        arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        assert arguments == f"--jars theirs.jar,{jar} pyspark-shell"

    def test_leaves_a_server_elsewhere_alone(self) -> None:
        builder = SparkSession.builder.remote("sc://elsewhere")
        assert options(configure(builder)) == {"spark.remote": "sc://elsewhere"}

    def test_starts_a_server_of_its_own_with_what_its_sessions_cannot_set(
        self, jar: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
        builder = SparkSession.builder.remote("local").config(CLASSES, "200")
        assert options(configure(builder)) == {
            "spark.remote": "local",
            "spark.sql.extendedExplainProviders": EXPLAIN_PROVIDER,
            PROVIDER: STATE_STORE,
            FILES: FILE_MANAGER,
            CLASSES: "200",
        }
        arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        settings = f"--conf spark.jars={jar} --conf spark.sql.extensions={EXTENSION}"
        assert arguments == f"{settings} pyspark-shell"

    def test_leaves_its_own_server_alone_once_it_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")
        builder = SparkSession.builder.remote("local")
        assert options(configure(builder)) == {"spark.remote": "local"}


def test_a_package_without_its_jar_says_where_it_looked(tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "python", ignore=shutil.ignore_patterns("*.jar"))
    script = """
import spark_changelog.session
try:
    spark_changelog.session.package_jar()
except FileNotFoundError as error:
    print(error)
"""
    printed = run([sys.executable, "-c", script], tmp_path / "python")
    folder = tmp_path / "python" / "spark_changelog" / "jars"
    name = f"{jar_name(spark_line())}-*.jar"
    spark = pyspark.__version__
    assert printed.strip() == f"one {name} is expected in {folder} for Spark {spark}, found none"


def test_the_jar_of_the_installed_spark_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_changelog.session, "__file__", str(tmp_path / "session.py"))
    (tmp_path / "jars").mkdir()
    for name in "spark-changelog_2.13-1.0.0.jar", "spark-changelog_4.1_2.13-1.0.0.jar":
        (tmp_path / "jars" / name).touch()
    monkeypatch.setattr(pyspark, "__version__", "4.2.1")
    assert package_jar().name == "spark-changelog_2.13-1.0.0.jar"
    monkeypatch.setattr(pyspark, "__version__", "4.1.2")
    assert package_jar().name == "spark-changelog_4.1_2.13-1.0.0.jar"
    monkeypatch.setattr(pyspark, "__version__", "4.0.0")
    with pytest.raises(FileNotFoundError, match=r"for Spark 4\.0\.0, found spark-changelog_2"):
        package_jar()


SESSION_AFTER_A_STOPPED_ONE = """
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder.getOrCreate().stop()
spark = changelog.configure(builder).getOrCreate()
print(spark.sql("SELECT * FROM to_changelog(TABLE(VALUES (1)))").collect())
"""


def test_a_driver_that_already_runs_gets_the_jar(jar: Path, tmp_path: Path) -> None:
    printed = run_script(SESSION_AFTER_A_STOPPED_ONE, jar, tmp_path)
    assert printed.strip() == "[Row(col1=1, _change_type='insert')]"


SESSION_WITHOUT_THE_EXTENSION = """
import warnings

from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.getOrCreate()
df = spark.range(1)
calls = [
    lambda: changelog.from_changelog(df),
    lambda: changelog.from_debezium(df, "id INT"),
    lambda: changelog.lookup(df),
    lambda: changelog.to_changelog(df),
    lambda: changelog.explain(df),
    lambda: changelog.dry_run(df),
    lambda: changelog.why(df),
    lambda: changelog.evolve(df, "folder"),
    lambda: changelog.rescale("folder", "other", 4),
    lambda: changelog.savepoints("folder"),
    lambda: changelog.refresh("v"),
    lambda: changelog.verify("v"),
    lambda: changelog.run(),
    lambda: changelog.ChangelogConf(spark).share_equal_parts,
]
for call in calls:
    try:
        call()
    except RuntimeError as error:
        print(error)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert changelog.configure(SparkSession.builder).getOrCreate() is spark
    print(told[0].message)
    assert told[0].filename == "<string>"
    spark.stop()
    told.clear()
    changelog.configure(builder).getOrCreate()
    changelog.configure(SparkSession.builder).getOrCreate()
    assert not told, told
"""


def test_a_session_without_the_extension_is_told(jar: Path, tmp_path: Path) -> None:
    lines = run_script(SESSION_WITHOUT_THE_EXTENSION, jar, tmp_path).splitlines()
    assert len(lines) == 15
    for line in lines:
        assert line.startswith("Start the Spark session with spark-changelog: call spark.stop()")
        assert f"spark.sql.extensions to {EXTENSION}" in line
        assert line.endswith("its spark.sql.extensions is not set.")
