# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Reads the code of pages in ``docs/`` by section, for tests to run."""

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


def write(folder: Path, name: str, *lines: str) -> None:
    """Write lines into a file that appears at once in the folder of a file source."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines))
    hidden.rename(folder / name)
