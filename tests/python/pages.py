# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Reads the code of a page in ``docs/``, section by section, so that tests can run it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from processes import ROOT

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """The blocks of code below one heading, each with its language."""

    blocks: list[tuple[str, str]]

    def of(self, language: str) -> list[str]:
        """Return the blocks in a language."""
        return [code for name, code in self.blocks if name == language]

    def run_python(self, **names: Any) -> dict[str, Any]:
        """Run all blocks in Python, with ``names`` to begin with, and return what they name."""
        for code in self.of("python"):
            exec(code, names)
        return names

    def statements(self) -> list[str]:
        """Return the SQL statements, in order."""
        text = "".join(self.of("sql"))
        return [statement.strip() for statement in text.split(";") if statement.strip()]


def sections(page: str) -> dict[str, Section]:
    """Return the sections of ``docs/<page>.md`` that hold Python or SQL, by their headings."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    found = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        section = Section([(match[1], match[2]) for match in FENCE.finditer(body)])
        if section.of("python") or section.of("sql"):
            found[heading] = section
    return found


def write(folder: Path, name: str, *lines: str) -> None:
    """Put lines into a file that a file source sees as a whole."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(f"{line}\n" for line in lines))
    hidden.rename(folder / name)
