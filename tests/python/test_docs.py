# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The examples in docstrings and in the README run, and print the shown output."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_changelog
from pages import FENCE, sections
from processes import ROOT, run_script

MODULES = ["spark_changelog"] + [
    module.name for module in pkgutil.walk_packages(spark_changelog.__path__, "spark_changelog.")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(spark: SparkSession, name: str) -> None:
    results = doctest.testmod(
        importlib.import_module(name),
        extraglobs={"spark": spark.newSession()},
        optionflags=doctest.NORMALIZE_WHITESPACE,
    )
    assert results.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name))]
    assert sum(len(test.examples) for test in found) > 10


def readme_example() -> str:
    """Return the first Python block of the README."""
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    return block[1]


def readme_output() -> str:
    """Return the next block, the expected output of the example."""
    block = re.search(
        r"```python\n.*?```.*?```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert block is not None
    return block[1]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_readme_example_is_short() -> None:
    assert len([line for line in readme_example().splitlines() if line.strip()]) <= 20


def test_the_readme_example(jar: Path, tmp_path: Path) -> None:
    assert run_script(readme_example(), jar, tmp_path).strip() == readme_output().strip()


def test_the_sql_of_the_readme_is_that_of_the_tutorial() -> None:
    tutorial = sections("tutorial")["The same in SQL"]
    readme = FENCE.findall((ROOT / "README.md").read_text())
    assert readme[0] == ("sql", tutorial.of("sql")[0])
    assert readme[1] == ("text", tutorial.of("text")[0])


def test_the_index_and_the_site_list_every_page() -> None:
    docs = ROOT / "docs"
    index, site = (docs / "index.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    for path in docs.rglob("*.md"):
        page = path.relative_to(docs).as_posix()
        assert page == "index.md" or f"]({page}" in index, f"{page} is not in the index"
        assert f": {page}\n" in site, f"{page} is not on the site"


def test_every_operator_has_a_page() -> None:
    inference = ROOT / "scala/src/main/scala/org/apache/spark/sql/changelog/inference"
    names = re.findall(r'"(Changelog\w+)"', (inference / "DescribeNode.scala").read_text())
    pages = {path.name: path.read_text() for path in (ROOT / "docs" / "operators").glob("*.md")}
    assert len(names) > 10
    for name in names:
        assert any(name in text for text in pages.values()), f"no page tells of {name}"
    site = (ROOT / "mkdocs.yml").read_text()
    for name in pages:
        assert f"operators/{name}" in site, f"{name} is not on the site"
