# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The examples in docstrings and in the README run, and print the shown output."""

from __future__ import annotations

import doctest
import importlib
import json
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


def test_every_page_links_the_glossary() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        if path.name != "glossary.md":
            assert "glossary.md)" in path.read_text(), f"{path.name} does not link the glossary"


def test_the_glossary_is_sorted_and_each_term_has_one_entry() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    terms = [term.lower() for term in re.findall(r"^- \*\*(.+?)\*\*: ", text, re.MULTILINE)]
    assert len(terms) > 100
    assert terms == sorted(set(terms))


def test_every_column_and_metric_is_documented() -> None:
    engine = ROOT / "scala/src/main/scala/org/apache/spark/sql/changelog"
    docs = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    commands = "".join(
        path.read_text()
        for folder in ("views/commands", "savepoints", "plans", "explain")
        for path in (engine / folder).rglob("*.scala")
    )
    types = "STRING|DOUBLE|BIGINT|TIMESTAMP|ARRAY|MAP|STRUCT"
    columns = set(re.findall(rf"\b([a-z_]+):? (?:{types})\b", commands))
    calls = r'(?:Column|Count|Ratio|count)\(\s*"(?:\w+", ")?([a-z_]+)"'
    columns |= set(re.findall(calls, commands))
    assert {"behind_seconds", "full_seconds", "batch_time", "state_bytes"} <= columns
    for column in columns:
        assert f"`{column}`" in docs, f"no page has the column {column}"
    operators = "".join(path.read_text() for path in (engine / "execution").rglob("*.scala"))
    metrics = set(re.findall(r'"(num\w+)" -> "|val \w+ = "(num\w+)"', operators))
    page = (ROOT / "docs" / "metrics.md").read_text()
    assert len(metrics) > 10
    for metric in metrics:
        assert f"`{metric[0] or metric[1]}`" in page, f"metrics.md lacks {metric}"
    status = (engine / "views" / "ViewStatus.scala").read_text()
    facts = status[status.index("def facts") : status.index("def details")]
    page = (ROOT / "docs" / "statements" / "describe.md").read_text()
    for fact in re.findall(r'"([A-Z][A-Za-z ]+)" ->', facts):
        assert f"`{fact}`" in page, f"describe.md lacks {fact}"


def test_the_dashboard_shows_existing_metrics() -> None:
    dashboard = json.loads((ROOT / "examples" / "monitoring" / "dashboard.json").read_text())
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    page = (ROOT / "docs" / "metrics.md").read_text()
    names = [name for text in targets for name in re.findall(r"_([a-zA-Z]+)_Value", text)]
    assert len(names) == len(targets) > 5
    for name in names:
        assert f"`-{name}`" in page or f"`{name}`" in page, f"metrics.md lacks {name}"


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
