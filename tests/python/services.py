# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Real databases and a Kafka broker for the duration of a test."""

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
    """Start a service and yield the connection settings. Skip the test without the service."""
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
