# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The pictures of the documentation are current."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from processes import ROOT


@pytest.fixture
def drawing() -> ModuleType:
    spec = spec_from_file_location("running_pictures", ROOT / "dev" / "running_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(svg: str) -> str:
    """Return the texts of a picture, without times and sizes."""
    found = " ".join(re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL))
    return re.sub(r"[\d.,]+ (ms|B|KiB|MiB)\b", "…", re.sub(r"\s+", " ", found))


def test_the_running_query_is_drawn_as_it_runs(
    spark: SparkSession, drawing: ModuleType, tmp_path: Path
) -> None:
    drawing.tables(spark, tmp_path)
    query = drawing.start(spark, "per_city", drawing.PER_CITY, tmp_path)
    try:
        drawn = texts(drawing.plan_of(query))
    finally:
        query.stop()
    assert "churn" in drawn
    assert drawn == texts((ROOT / "docs" / "running.svg").read_text())


def test_every_picture_is_small_and_on_a_page() -> None:
    command = [sys.executable, str(ROOT / "dev" / "pictures"), "--check"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""
