"""Hooks of the site's builder: they add pages from the repository's root, mend links that leave ``docs/``, and show pictures as text.

On GitHub a page links to files beside ``docs/``. The site has the changelog and the contributor's guide as pages; it has no
page for other files, so a link to one becomes its path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from properdocs.structure.files import File

ROOT = Path(__file__).parent.parent
FROM_ROOT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^]]*)\]\(([^)#: ]+)((?:#[^)]*)?)\)")


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages that lie at the root, with their links as seen from ``docs/``."""
    for source, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=site_text((ROOT / source).read_text(), ROOT)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001  # the hook's signature
    """Mend the links of a page below ``docs/``."""
    source = ROOT / "docs" / page.file.src_uri
    return pictures_as_text(site_text(markdown, source.parent) if source.exists() else markdown)


def site_text(text: str, folder: Path) -> str:
    """Return the text of a page in ``folder`` with its links as the site needs them; blocks of code stay as they are."""
    pieces = _FENCED.split(text)
    return "".join(piece if at % 2 else _LINK.sub(lambda m: _link(m, folder), piece) for at, piece in enumerate(pieces))


def pictures_as_text(text: str) -> str:
    """Replace Mermaid flowcharts, which GitHub draws, by lists: steps of a chain, or the targets of each node's arrows."""
    return _PICTURE.sub(lambda m: _as_list(m[1]), text)


def _as_list(chart: str) -> str:
    labels = dict(re.findall(r'(\w+)\["(.+?)"\]', chart))
    shown = {
        node: "`" + label.replace("<br/>", "`: ", 1) + ("" if "<br/>" in label else "`")
        for node, label in labels.items()
    }
    lines = [line.split(" --> ") for line in map(str.strip, chart.splitlines()) if " --> " in line]
    if len(lines) == 1:
        return "".join(f"{at}. {shown.get(node, f'`{node}`')}\n" for at, node in enumerate(lines[0], 1))
    targets: dict[str, list[str]] = {}
    for source, target in lines:
        targets.setdefault(source, []).append(shown.get(target, f"`{target}`"))
    return "".join(f"- {shown.get(source, f'`{source}`')} → {', '.join(to)}\n" for source, to in targets.items())


def _link(match: re.Match[str], folder: Path) -> str:
    label, target, anchor = match.groups()
    there = (folder / target).resolve()
    docs = ROOT / "docs"
    if there.is_relative_to(docs):
        inside = there / "README.md" if there.is_dir() else there
        seen_from = folder if folder.is_relative_to(docs) else docs
        return f"[{label}]({_relative(inside, seen_from)}{anchor})"
    if folder in (docs, ROOT) and there.name in FROM_ROOT and there.parent == ROOT:
        return f"[{label}]({FROM_ROOT[there.name]}{anchor})"
    if there.exists():
        path = there.relative_to(ROOT).as_posix()
        return f"`{path}`" if path in label or label.strip("`") == path else f"{label} (`{path}`)"
    return match[0]  # the builder reports it


def _relative(path: Path, folder: Path) -> str:
    """Return ``path`` relative to ``folder``, a folder at or below ``docs/``."""
    up, base = "", folder
    while not path.is_relative_to(base):
        up, base = up + "../", base.parent
    return up + path.relative_to(base).as_posix()
