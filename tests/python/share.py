# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The part of many tests that a run takes, by its commit, as ``Share`` chooses it in Scala."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

# Whether nothing is left out.
IS_ALL = "CHANGELOG_TEST_ALL" in os.environ


def choose(what: str, size: int) -> int:
    """Return a number below ``size`` that depends on the share and on what is chosen."""
    return zlib.crc32(f"{os.environ.get('CHANGELOG_TEST_SHARE', '')} {what}".encode()) % size


def of(values: Sequence[T], one_in: int, what: str) -> Sequence[T]:
    """Return one in so many values, or all of them."""
    return values if IS_ALL else values[choose(what, one_in) :: one_in]


def runs_of(names: Iterable[str]) -> list[object]:
    """Return names with whether to restart: one of both by the share, unless all is tested."""
    return [
        pytest.param(name, restart, id=f"{name}-{'restarted' if restart else 'running'}")
        for name in names
        for restart in (False, True)
        if IS_ALL or restart == bool(choose(name, 2))
    ]
