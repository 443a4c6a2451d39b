# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Runs what needs a process of its own: another session, another Python, a command of Spark's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from spark_changelog.session import MAIN_LINE, spark_line

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "python"

# Where sbt leaves the jar for the installed Spark.
_OTHER_LINE = [] if spark_line() == MAIN_LINE else [f"spark-{spark_line()}"]
JARS = ROOT.joinpath("target", *_OTHER_LINE, "scala-2.13")

# Lets `configure` hand over the jar given as first argument: a source tree has none in place.
WITH_JAR = """
import pathlib, sys
import spark_changelog as changelog, spark_changelog.session
spark_changelog.session.package_jar = lambda: pathlib.Path(sys.argv[1])
"""


def run(command: list[str | Path], folder: Path, **environment: str) -> str:
    """Run ``command`` in ``folder``, and return what it prints; failing shows its errors."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command,
        env={**inherited, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def run_script(script: str, jar: Path, *arguments: Path, **environment: str) -> str:
    """Run Python source with this source tree and ``jar``, beside the first argument."""
    command: list[str | Path] = [sys.executable, "-c", WITH_JAR + script, jar, *arguments]
    return run(command, arguments[0], PYTHONPATH=str(SOURCE), **environment)
