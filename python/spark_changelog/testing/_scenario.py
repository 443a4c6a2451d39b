# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Scenarios: queries with input changes and expected changes, read from text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_changelog.functions import Mode
from spark_changelog.testing._feeds import Feed

_FEED = re.compile(
    r"(\w+)\((.+?)\)(?: KEY \(([^)]*)\))?(?: SEQUENCE BY \(([^)]*)\))?(?: (INSERT ONLY|UPSERT))?",
    re.DOTALL,
)
_MODE = re.compile(r"(retract|upsert|append)(?: KEY \(([^)]*)\))?")
_PARAMETER = re.compile(r"(\w+): (.*)")
_WORDS = {"feed", "query", "mode", "error"}


@dataclass(frozen=True)
class Step:
    """The input changes of one batch, as pairs of feed and text, and the expected changes."""

    changes: Sequence[tuple[str, str]]
    expected: Sequence[str] = ()


@dataclass(frozen=True)
class Scenario:
    """A query over changing tables, with input changes and expected changes.

    A scenario is written as text::

        -- A row moves from one group to another.
        feed rides(id INT, city STRING, fare INT) KEY (id)
        query SELECT city, sum(fare) AS total
          FROM rides GROUP BY city
        mode upsert KEY (city)

        rides +I 1 Oslo 5
        -> +I Oslo 5
        rides -U 1 Oslo 5
        & rides +U 1 Rome 5
        -> -D Oslo 5
        -> +I Rome 5

    - The comment at the top is the title. An indented line continues the previous line.
    - ``KEY (…)``, ``SEQUENCE BY (…)``, ``INSERT ONLY`` and ``UPSERT`` after a feed's columns are
      the attributes of `Feed`.
    - ``mode`` is the changelog mode of `to_changelog`, by default ``retract``.
    - Each change is a batch. ``&`` at the start of a line puts the change into the previous
      batch.
    - Values are separated by blanks and parsed by ``CAST``. ``NULL`` is NULL, ``'New York'`` a
      string with a blank, and ``''`` the empty string.
    - The lines with ``->`` after a batch are the expected changes, complete, in any order. A text
      without ``->`` is compared with batch Spark only.
    - ``error CONDITION`` in place of changes means: the query must fail at its start. Indented
      lines ``name: value`` are the expected parameters of the condition.

    Examples
    --------
    >>> scenario = Scenario.parse('''
    ...     feed rides(city STRING, fare INT)
    ...     query SELECT city, sum(fare) AS total FROM rides GROUP BY city
    ...     rides +I Oslo 5
    ...     -> +I Oslo 5
    ... ''')
    >>> scenario.feeds[0].columns, scenario.steps[0].expected
    ('city STRING, fare INT', ('+I Oslo 5',))
    """

    title: str
    feeds: Sequence[Feed]
    query: str
    steps: Sequence[Step]
    mode: Mode = "retract"
    key: Sequence[str] = ()
    error: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def tells_changes(self) -> bool:
        """Whether the text has expected changes."""
        return any(step.expected for step in self.steps)

    @classmethod
    def read(cls, path: str | Path) -> Scenario:
        """Read a scenario from a file."""
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @classmethod
    def parse(cls, text: str) -> Scenario:
        """Read a scenario from text. The text as a whole may be indented."""
        lines = [line for line in textwrap.dedent(text).splitlines() if line.strip()]
        title = [
            line.removeprefix("--").strip()
            for line in lines
            if line.startswith("--") and not line.startswith("-- tags: ")
        ]
        statements = _joined(line for line in lines if not line.startswith("--"))
        said = {word: [rest for first, rest in statements if first == word] for word in _WORDS}
        if len(said["query"]) != 1 or len(said["mode"]) > 1 or len(said["error"]) > 1:
            raise ValueError("a scenario has one query, and at most one mode and one error")
        feeds = tuple(map(_feed, said["feed"]))
        mode, key = _mode(said["mode"][0]) if said["mode"] else ("retract", ())
        error = said["error"][0].splitlines() if said["error"] else []
        return cls(
            " ".join(title),
            feeds,
            said["query"][0],
            _steps([pair for pair in statements if pair[0] not in _WORDS], feeds),
            mode,
            key,
            error[0] if error else None,
            dict(map(_parameter, error[1:])),
        )


def _joined(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return the first word and the rest of each statement."""
    statements: list[str] = []
    for line in lines:
        if line[0].isspace() and statements:
            statements[-1] += "\n" + line.strip()
        else:
            statements.append(line.strip())
    pairs = [statement.partition(" ") for statement in statements]
    return [(first, rest.strip()) for first, _, rest in pairs]


def _feed(text: str) -> Feed:
    match = _FEED.fullmatch(text)
    if match is None:
        raise ValueError(f"'feed {text}' is not a feed, as in feed rides(id INT) KEY (id)")
    name, columns, key, sequence, kind = match.groups()
    return Feed(
        name,
        columns,
        key=_names(key) or None,
        input="upsert" if kind == "UPSERT" else "retract",
        sequence_by=_names(sequence) or None,
        insert_only=kind == "INSERT ONLY",
    )


def _mode(text: str) -> tuple[Mode, tuple[str, ...]]:
    match = _MODE.fullmatch(text)
    if match is None:
        raise ValueError(f"'mode {text}' is none of retract, upsert KEY (…), append")
    return match[1], _names(match[2])  # type: ignore[return-value]


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _parameter(text: str) -> tuple[str, str]:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not a parameter, as in name: value")
    return match[1], match[2]


def _steps(lines: Sequence[tuple[str, str]], feeds: Sequence[Feed]) -> list[Step]:
    known = {feed.name for feed in feeds}
    steps: list[Step] = []
    for first, rest in lines:
        together = first == "&"
        name, change = rest.split(maxsplit=1) if together and " " in rest else (first, rest)
        if first == "->" and steps:
            steps[-1] = Step(steps[-1].changes, (*steps[-1].expected, rest))
        elif name not in known or not change:
            raise ValueError(f"'{first} {rest}' is not a change of a feed")
        elif together and steps:
            steps[-1] = Step((*steps[-1].changes, (name, change)), steps[-1].expected)
        else:
            steps.append(Step(((name, change),)))
    return steps
