# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""Lets the pages of ``docs/`` be a site as they are: a hook that mkdocs calls.

They are read on the repository's own pages as well, so they link to files that are no pages, such
as results of benchmarks. Here these links lead to the repository, if it is known where that is
(``PROJECT_URL``); if not, their text stays. The README, the first page there, is the first one
here. A bar within code in a table is escaped there, and must not be here.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^][]*)\]\(((?:\.\./)*)([^)#:]+)(#[^)]*)?\)")

CODE = re.compile(r"`[^`\n]+`")

log = logging.getLogger("mkdocs.hooks")  # a warning ends a strict build


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page that leave ``docs/`` into links to the repository."""
    folder = PurePosixPath("docs", page.file.src_uri).parent
    if page.file.src_uri == "index.md":
        markdown = (ROOT / "README.md").read_text()
        folder = PurePosixPath()

    def rewrite(link: re.Match[str]) -> str:
        text, _, _, anchor = link.groups()
        path = (ROOT / folder / (link[2] + link[3])).resolve().relative_to(ROOT)
        if path.parts[0] == "docs" and path.suffix:
            below = "/".join(path.parts[1:]) if folder == PurePosixPath() else link[2] + link[3]
            return f"[{text}]({below}{anchor or ''})"
        if not (ROOT / path).exists():
            log.warning("'%s' links to %s, which is not there", page.file.src_uri, path)
        return f"[{text}]({config.repo_url}/blob/main/{path})" if config.repo_url else text

    return CODE.sub(lambda code: code[0].replace(r"\|", "|"), LINK.sub(rewrite, markdown))
