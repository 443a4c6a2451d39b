# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Real databases and a real broker, for as long as a test holds them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from processes import ROOT


@contextmanager
def running(name: str) -> Iterator[dict[str, Any]]:
    """Start a service and tell how to connect; skip where this machine can't have it."""
    command = [str(ROOT / "dev" / "services"), "run", name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        line = process.stdout.readline()
        assert line, f"{name} did not start"
        address: dict[str, Any] = json.loads(line)[name]
        try:
            if "missing" in address:
                pytest.skip(f"{name} is needed: {address['missing']}")
            yield address
        finally:
            process.stdin.close()
