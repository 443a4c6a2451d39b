# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Finds the programs of servers, and installs missing programs if permitted."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
CACHE = HOME / ".cache"


class Missing(Exception):
    """A service is not available on this machine."""


def find_program(name: str, *folders: str) -> Path | None:
    """Find a program in the newest of ``folders``, which may be patterns, or on the PATH."""
    found = [path for folder in folders for path in glob.glob(f"{folder}/{name}")]
    on_path = shutil.which(name)
    found = sorted(found, key=lambda path: [int(n) for n in path.split("/") if n.isdigit()])
    return Path(found[-1]) if found else Path(on_path) if on_path else None


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold a lock, so a second process of this tree waits."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def installed(package: str, program: str, *folders: str) -> Path:
    """Find a program under a lock, and install its Debian package if missing."""
    with alone("install"):
        return find_or_install(package, program, *folders)


def find_or_install(package: str, program: str, *folders: str) -> Path:
    """Find a program, or install its Debian package. The caller holds the lock."""
    path = find_program(program, *folders)
    if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        install = ["apt-get", "install", "--yes", "--no-install-recommends", package]
        for command in (["apt-get", "update"], install):
            subprocess.run(command, capture_output=True, check=False)
        path = find_program(program, *folders)
    if path is None:
        raise Missing(f"{program} is not installed: install the package {package}")
    return path


def java() -> str:
    """Return the Java command."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def fetch(artifact: tuple[str, str, str], folder: Path) -> None:
    """Download an artifact and its dependencies to a folder, with the copy of Ivy in PySpark."""
    venv = os.environ.get("CHANGELOG_VENV", f"{HOME}/.venv")
    pattern = f"{venv}/lib/python*/site-packages/pyspark/jars/ivy-*.jar"
    ivy = next(iter(glob.glob(pattern)), None)
    if ivy is None:
        raise Missing("there is no .venv: run dev/build first")
    target = f"{folder}/[artifact]-[revision].[ext]"
    command = [java(), "-cp", ivy, "org.apache.ivy.Main", "-dependency", *artifact, "-warn"]
    done = subprocess.run(
        [*command, "-types", "jar", "bundle", "-retrieve", target],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Missing(f"could not download {':'.join(artifact)}")
