# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The services start, and end with the process that started them, in every case."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from processes import ROOT
from services import running

NAMES = ["postgres", "mariadb", "kafka"]


def answers(address: dict[str, Any]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address["host"], address["port"])) == 0


def await_silence(address: dict[str, Any]) -> None:
    deadline = time.monotonic() + 20
    while answers(address):
        assert time.monotonic() < deadline, f"still there: {address}"
        time.sleep(0.1)


@pytest.mark.parametrize("name", NAMES)
def test_a_service_answers_until_nobody_holds_it(name: str) -> None:
    with running(name) as address:
        assert answers(address)
    await_silence(address)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must tell of a parent's death")
def test_a_service_dies_with_a_holder_that_is_killed() -> None:
    holder = f"""
import json, os, signal, sys
sys.path.insert(0, {str(ROOT / "tests" / "python")!r})
from services import running
with running("postgres") as address:
    print(json.dumps(address), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", holder], capture_output=True, text=True)
    if "is needed" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == -signal.SIGKILL, done.stderr
    await_silence(json.loads(done.stdout))


def test_services_run_in_the_background_until_they_are_stopped(tmp_path: Path) -> None:
    def services(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ROOT / "dev" / "services"), *arguments],
            # separate from a developer's running services
            env=os.environ | {"CHANGELOG_SERVICES": str(tmp_path / "services.json")},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    assert services("status").stdout == "not running\n"
    started = services("start", "postgres")
    try:
        address = json.loads(started.stdout)["postgres"]
        if "missing" in address:
            pytest.skip(f"postgres is needed: {address['missing']}")
        assert answers(address)
        assert services("status").stdout == started.stdout
        again = services("start", "postgres")
        assert again.returncode == 1
        assert "already running" in again.stderr
    finally:
        stopped = services("stop")
    assert stopped.returncode == 0
    await_silence(address)
    assert services("status").stdout == "not running\n"


def test_an_unknown_service_is_refused() -> None:
    command = [str(ROOT / "dev" / "services"), "run", "oracle"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "dev/services run" in done.stderr
