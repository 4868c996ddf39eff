"""What every page is made of: escaped text, tables, and the document around them."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import Iterable, Sequence
from html import escape

from longtail.report.table import printable

__all__ = ["document", "element", "head", "row", "safe", "table", "written"]


_STYLE = "body { margin: 0; } .lt-report { min-height: 100vh; }"  # around an element


def safe(text: object) -> str:
    """Return text that is escaped, and without what a browser might obey or cannot show."""
    return escape(printable(str(text)))


def document(title: str, inside: str, style: str = _STYLE) -> str:
    """Return a whole page: one file, with nothing from elsewhere.

    Parameters
    ----------
    title : str
        What the browser shows as its name; any text.
    inside : str
        The body as markup: an ``element``, or something that ``style`` is written for.
    style : str
        A style sheet.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{safe(title)}</title>\n"
        f"<style>{style}</style>\n"
        f"</head>\n<body>\n{inside}\n</body>\n</html>\n"
    )


def element(sections: Iterable[str]) -> str:
    """Return sections as one element that brings its style and, if a table can be sorted, the
    script.
    """
    body = "\n".join(part for part in sections if part)
    script = f"<script>{_resource('sort.js')}</script>" if 'class="sortable"' in body else ""
    style = _resource("page.css")
    return f'<div class="lt-report"><style>{style}</style><main>{body}</main>{script}</div>'


def _resource(name: str) -> str:
    return importlib.resources.files("longtail.report").joinpath(name).read_text("utf-8")


def head(names: Sequence[str], extra: Sequence[str] = ()) -> str:
    """Return the row of column names; ``extra`` names columns that narrow screens leave out."""
    cells = "".join(f'<th scope="col"{_extra(name, extra)}>{safe(name)}</th>' for name in names)
    return f"<tr>{cells}</tr>"


def row(
    name: str,
    names: Sequence[str],
    cells: Sequence[str],
    extra: Sequence[str] = (),
    kind: str = "",
) -> str:
    """Return a row with its own name in front; ``cells`` are markup."""
    style = f' class="{kind}"' if kind else ""
    inside = "".join(
        f"<td{_extra(column, extra)}>{cell}</td>"
        for column, cell in zip(names[1:], cells, strict=True)
    )
    return f'<tr><th scope="row"{style}><bdi>{safe(name)}</bdi></th>{inside}</tr>'


def _extra(name: str, extra: Sequence[str]) -> str:
    return ' class="extra"' if name in extra else ""


def table(caption: str, head: str, body: Iterable[str], *, sortable: bool = False) -> str:
    """Return a table that scrolls sideways within itself on narrow screens, by keyboard too.

    A sortable one scrolls downwards as well, and its column names become buttons.
    """
    kind, of = ("scroll tall", ' class="sortable"') if sortable else ("scroll", "")
    return (
        f'<div class="{kind}" role="region" aria-label="{safe(caption)}" tabindex="0">'
        f"<table{of}><thead>{head}</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def written(html: str, path: str | os.PathLike[str] | None) -> str:
    """Return the same page, also written to ``path`` if one is given."""
    if path is not None:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(html)
    return html
