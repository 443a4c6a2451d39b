# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Runs code in separate processes: a new session, a new Python, or a Spark command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from spark_changelog.session import MAIN_LINE, spark_line

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "python"

# The folder of sbt's jar for the installed Spark.
_OTHER_LINE = [] if spark_line() == MAIN_LINE else [f"spark-{spark_line()}"]
JARS = ROOT.joinpath("target", *_OTHER_LINE, "scala-2.13")

# Makes `configure` use the jar of the first argument, since a source tree has no packaged jar.
WITH_JAR = """
import pathlib, sys
import spark_changelog as changelog, spark_changelog.session
spark_changelog.session.package_jar = lambda: pathlib.Path(sys.argv[1])
"""


def run(command: list[str | Path], folder: Path, **environment: str) -> str:
    """Run ``command`` in ``folder``, and return its output. A failure shows the errors."""
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
    """Run Python source with this source tree and ``jar``, in the first argument's folder."""
    command: list[str | Path] = [sys.executable, "-c", WITH_JAR + script, jar, *arguments]
    return run(command, arguments[0], PYTHONPATH=str(SOURCE), **environment)
