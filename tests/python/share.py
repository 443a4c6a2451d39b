# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""What each run takes of tests that are many, as ``Share`` does of those in Scala."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

# Whether nothing is left out.
IS_ALL = "CHANGELOG_TEST_ALL" in os.environ


def runs_of(names: Iterable[str]) -> list[object]:
    """Return names with whether to restart: by turns, unless all is tested."""
    return [
        pytest.param(name, restart, id=f"{name}-{'restarted' if restart else 'running'}")
        for number, name in enumerate(names)
        for restart in (False, True)
        if IS_ALL or restart == (number % 2 == 0)
    ]
