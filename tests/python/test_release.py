# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Pages and workflows name the versions of the build."""

from __future__ import annotations

import re
from pathlib import Path

import pyspark

import spark_changelog
from processes import ROOT, SOURCE
from spark_changelog.session import MAIN_LINE

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


def text(path: str) -> str:
    return (ROOT / path).read_text()


def found(pattern: str, path: str) -> str:
    """Return the only match of a pattern in a file."""
    matches = set(re.findall(pattern, text(path)))
    assert len(matches) == 1, f"{pattern} in {path}: {matches or 'nothing'}"
    return str(matches.pop())


VERSION = found(r'version := "([^"]+)"', "version.sbt")
RELEASE = VERSION.removesuffix("-SNAPSHOT")
BUILD = "project/Dependencies.scala"
SPARK = found(r'mainSpark = "([^"]+)"', BUILD)
OTHERS = found(r"other_sparks=\(([\d. ]+)\)", "dev/common.sh").split()
SCALA = found(r'scalaVersion = "([^"]+)"', BUILD)


def mentions(page: Path) -> set[str]:
    """Return the versions of our jars, wheels and coordinates on a page."""
    name = r"spark[-_]changelog(?:_[\d.]+)*(?:-|:|==)(\d+\.\d+\.\d+(?:-SNAPSHOT|\.dev0)?)"
    return set(re.findall(name, page.read_text()))


def test_pages_name_the_version_of_the_build() -> None:
    named = {page.name: mentions(page) for page in PAGES}
    assert named["README.md"]
    assert named["install.md"]
    assert {version for versions in named.values() for version in versions} <= {VERSION, RELEASE}


def test_the_changelog_knows_the_version() -> None:
    section = "Unreleased" if VERSION != RELEASE else RELEASE
    assert f"\n## [{section}]" in text("CHANGELOG.md")


def test_no_setting_is_newer_than_the_version() -> None:
    shims = "org/apache/spark/sql/changelog/compat/PlanShims.scala"
    since = [
        found(r'\.version\("([\d.]+)"\)', f"scala/src/main/{line}/{shims}")
        for line in ("spark-4.1", "spark-4.2+")
    ]
    assert max(tuple(map(int, version.split("."))) for version in since) <= tuple(
        map(int, RELEASE.split("."))
    )


def test_the_table_of_versions_is_that_of_the_build() -> None:
    rows = re.findall(r"^\| ([\w ]+) \| (.+?) \|", text("docs/install.md"), re.MULTILINE)
    table = dict(rows[-10:])
    assert table["Spark"] == table["Kafka connector"] == SPARK
    assert table["Scala"] == SCALA
    assert table["Delta"] == found(r'delta-spark_.+_2\.13" % "([^"]+)"', BUILD)
    drivers = {
        "PostgreSQL": "postgresql",
        "MariaDB": "mariadb-java-client",
        "MySQL": "mysql-connector-j",
    }
    for database, driver in drivers.items():
        version = found(rf'"{driver}" % "([^"]+)"', BUILD)
        assert table[database].endswith(f"by driver {version}")
    iceberg = found(r'"iceberg-spark-runtime-4\.1_2\.13" % "([^"]+)"', BUILD)
    assert table["Iceberg"].startswith(f"{iceberg}, with Spark 4.1")


def test_coordinates_of_connectors_are_those_tests_use() -> None:
    line = SPARK.rpartition(".")[0]
    build = text(BUILD).replace("% sparkVersion", f'% "{SPARK}"')
    build = build.replace('s"delta-spark_${SparkLine.of(sparkVersion)}', f'"delta-spark_{line}')
    build = re.sub(r"%+", "%", build)
    for artifact, version in re.findall(r"`[\w.]+:([\w.-]+):([\d.]+)`", text("docs/install.md")):
        name = artifact if f'"{artifact}"' in build else artifact.removesuffix("_2.13")
        assert f'"{name}" % "{version}"' in build


def test_python_is_built_for_the_same_spark() -> None:
    line = SPARK.rpartition(".")[0]
    # The workflow replaces this version to test more versions.
    required = found(r"\npyspark==([\d.]+)\n", "dev/requirements.txt")
    assert required in (SPARK, pyspark.__version__)
    assert line == MAIN_LINE
    lines = sorted(tuple(map(int, version.split(".")[:2])) for version in [*OTHERS, SPARK])
    (first, lowest), (last, highest) = lines[0], lines[-1]
    supported = f"pyspark>={first}.{lowest},<{last}.{highest + 1}"
    assert supported in text("docs/install.md")
    for version in OTHERS:
        assert f"build: {version} }}" in text(".github/workflows/test.yml")
        assert f"## {version}" in text("docs/contributing/spark-versions.md")


def test_the_dbt_package_is_of_the_same_version_and_tested_on_the_same_spark() -> None:
    assert found(r"\nversion: (.+)\n", "dbt/dbt_project.yml") == RELEASE
    assert found(r"\npyspark==([\d.]+)\n", "dev/requirements-dbt.txt") == SPARK
    pins = dict(re.findall(r"^(dbt-\w+).*==([\d.]+)$", text("dev/requirements-dbt.txt"), re.M))
    page = text("docs/dbt.md")
    for package, version in pins.items():
        assert f"{package} {version}" in page


def test_workflows_pin_one_version_of_each_action() -> None:
    uses = [
        use for workflow in WORKFLOWS for use in re.findall(r"uses: (\S+)", workflow.read_text())
    ]
    actions = dict(use.split("@") for use in uses if "@" in use)
    assert len(actions) > 5
    for use in uses:
        if not use.startswith("./"):
            action, _, commit = use.partition("@")
            assert re.fullmatch("[0-9a-f]{40}", commit), use
            assert actions[action] == commit, use


def test_the_reference_has_functions_that_are_called_like_their_modules() -> None:
    modules = {path.stem for path in (SOURCE / "spark_changelog").glob("*.py")}
    hidden = modules.intersection(spark_changelog.__all__)
    listed = re.findall(r"^::: spark_changelog\.(\w+)\.\1$", text("docs/python.md"), re.MULTILINE)
    assert set(listed) == hidden
