# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Reads the code of pages in ``docs/`` by section, for tests to run.

A fence with a title, such as ``python title="Not run here"``, is shown and not run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import ROOT

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """The code blocks below one heading, each with a language."""

    blocks: list[tuple[str, str]]

    def of(self, language: str) -> list[str]:
        """Return the blocks of a language."""
        return [code for name, code in self.blocks if name == language]

    def run_python(self, **names: Any) -> dict[str, Any]:
        """Run the Python blocks with the variables ``names``, and return the variables."""
        for code in self.of("python"):
            exec(code, names)
        return names

    def statements(self) -> list[str]:
        """Return the SQL statements, in order."""
        text = "".join(self.of("sql"))
        return [statement.strip() for statement in text.split(";") if statement.strip()]


def sections(page: str) -> dict[str, Section]:
    """Return the sections of ``docs/<page>.md`` with Python or SQL, by heading."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    found = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        section = Section([(match[1], match[2]) for match in FENCE.finditer(body)])
        if section.of("python") or section.of("sql"):
            found[heading] = section
    return found


def transcript(page: str) -> list[tuple[list[str], str | None]]:
    """Return the statements of each SQL block of a page, with the output shown below."""
    blocks = FENCE.findall((ROOT / "docs" / f"{page}.md").read_text())
    found: list[tuple[list[str], str | None]] = []
    for language, code in blocks:
        if language == "sql":
            found.append(([text.strip() for text in code.split(";") if text.strip()], None))
        elif language == "text" and found and found[-1][1] is None:
            found[-1] = (found[-1][0], code.strip())
    return found


def write(folder: Path, name: str, *lines: str) -> None:
    """Write lines into a file that appears at once in the folder of a file source."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines))
    hidden.rename(folder / name)
