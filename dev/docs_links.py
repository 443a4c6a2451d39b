# SPDX-FileCopyrightText: the spark-changelog authors
# SPDX-License-Identifier: Apache-2.0

"""A hook of mkdocs to adapt the pages of ``docs/`` for the site.

The pages are also read in the repository's web view. The hook handles three differences:

- Links to files outside ``docs/``, such as benchmark results, become links to the repository at
  ``PROJECT_URL``. Without ``PROJECT_URL`` only the text of the link stays.
- The README becomes the first page.
- In the web view a bar in a table's code needs an escape. On the site the escape is removed.
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

log = logging.getLogger("mkdocs.hooks")  # a warning fails a strict build


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files outside ``docs/`` into links to the repository."""
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
            log.warning("'%s' links to %s, a missing file", page.file.src_uri, path)
        return f"[{text}]({config.repo_url}/blob/main/{path})" if config.repo_url else text

    return CODE.sub(lambda code: code[0].replace(r"\|", "|"), LINK.sub(rewrite, markdown))
