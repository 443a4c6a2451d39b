# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The wheel includes the jar, and needs no network after the installation."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

import pytest

from pages import sections
from processes import ROOT, run
from spark_changelog.session import jar_name, spark_line
from test_docs import readme_example, readme_output

OFFLINE = {
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "127.0.0.1:9"),
    "JAVA_TOOL_OPTIONS": "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9 "
    "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9",
}


@pytest.fixture(scope="module")
def wheel() -> Path:
    """Return the wheel built by ``dev/build``."""
    folder = ROOT / "dist"
    wheels = sorted(folder.glob("spark_changelog-*.whl"))
    if len(wheels) != 1:
        raise FileNotFoundError(f"one wheel is expected in {folder}, found {wheels or 'none'}")
    return wheels[0]


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel and its dependencies into an empty environment."""
    folder = tmp_path_factory.mktemp("clean")
    run([sys.executable, "-m", "venv", folder], folder)
    python = folder / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", wheel], folder)
    return python


def test_it_holds_one_jar_for_each_line_of_spark_and_the_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    jars = [name.rpartition("-0")[0] for name in names if name.endswith(".jar")]
    assert f"spark_changelog/jars/{jar_name(spark_line())}" in jars
    assert len(set(jars)) == len(jars)
    assert "spark_changelog/py.typed" in names
    assert not [name for name in names if name.startswith("test")]


def test_its_jar_is_the_one_sbt_built(wheel: Path, jar: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"spark_changelog/jars/{jar.name}") == jar.read_bytes()


def test_its_version_is_that_of_version_sbt(wheel: Path) -> None:
    version = re.search(r'"(.+)"', (ROOT / "version.sbt").read_text())
    assert version is not None
    assert f"-{version[1].replace('-SNAPSHOT', '.dev0')}-py3" in wheel.name


def test_the_readme_example_runs_offline(clean_python: Path, tmp_path: Path) -> None:
    printed = run([clean_python, "-c", readme_example()], tmp_path, **OFFLINE)
    assert printed.strip() == readme_output().strip()


def test_it_works_below_spark_submit(clean_python: Path, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import spark_changelog as changelog\n"
        "from pyspark.sql import SparkSession\n"
        "spark = changelog.configure(SparkSession.builder).getOrCreate()\n"
        "print(changelog.to_changelog(spark.range(1)).collect())\n"
    )
    submit = clean_python.with_name("spark-submit")
    environment = {**OFFLINE, "PYSPARK_PYTHON": str(clean_python)}
    printed = run([submit, "--master", "local[1]", script], tmp_path, **environment)
    assert printed.strip() == "[Row(id=0, _change_type='insert')]"


def test_pytest_finds_the_fixtures_and_tells_what_fails(
    clean_python: Path, tmp_path: Path
) -> None:
    run(
        [clean_python, "-m", "pip", "install", "--quiet", f"pytest=={pytest.__version__}"],
        tmp_path,
    )
    right = sections("testing-your-queries")["In ten lines"].of("python")[0]
    (tmp_path / "test_right.py").write_text(right)
    (tmp_path / "test_wrong.py").write_text(
        "import pytest\n"
        "@pytest.mark.xfail(raises=AssertionError, strict=True)\n"
        + right.replace("Oslo 7", "Oslo 8")
    )
    options = ["-q", "--changelog-cuts", "1", "--changelog-seed", "7", "-p", "no:cacheprovider"]
    printed = run([clean_python, "-m", "pytest", *options], tmp_path, **OFFLINE)
    assert "1 passed, 1 xfailed" in printed
