# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""The share of the tests for a run, chosen by commit as by ``Share`` in Scala."""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

# Whether every test runs.
IS_ALL = "CHANGELOG_TEST_ALL" in os.environ

_NAME = os.environ.get("CHANGELOG_TEST_SHARE", "")
_WHOLE = os.environ.get("CHANGELOG_TEST_WHOLE", "").split()
_FIGURES = Path(__file__).parent.parent / "suite-seconds.tsv"


def choose(what: str, size: int) -> int:
    """Return a number below ``size``, determined by the share and by ``what``."""
    return zlib.crc32(f"{_NAME} {what}".encode()) % size


def of_modules(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return every test of fast modules, and a share of the tests of slow modules."""
    if IS_ALL or not _NAME:
        return list(items)
    lines = [line.split("\t") for line in _FIGURES.read_text().splitlines()]
    shares = {name: int(one_in) for name, _, one_in in lines}
    kept, numbers = [], Counter[str]()
    for item in items:
        module = item.path.stem
        one_in = shares.get(module, 1)
        number = numbers[module]
        numbers[module] += 1
        if module in _WHOLE or choose(f"{module} {number // one_in}", one_in) == number % one_in:
            kept.append(item)
    return kept


def of(values: Sequence[T], one_in: int, what: str) -> Sequence[T]:
    """Return one value in ``one_in``, or every value if every test runs."""
    return values if IS_ALL else values[choose(what, one_in) :: one_in]


def runs_of(names: Iterable[str]) -> list[object]:
    """Return pairs of name and restart: one pair per name by the share, or both pairs."""
    return [
        pytest.param(name, restart, id=f"{name}-{'restarted' if restart else 'running'}")
        for name in names
        for restart in (False, True)
        if IS_ALL or restart == bool(choose(name, 2))
    ]
