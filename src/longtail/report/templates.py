"""Templates: how pages, cards and texts are filled in, so that no name can become markup."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from longtail.report.formatting import align, per_cent, printable, wrapped

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Rendered", "document", "fragment", "render"]


def render(template: str, **values: Any) -> str:
    """Return a file of ``longtail/templates`` with its expressions filled in.

    Whatever an expression yields is made printable, and then escaped for HTML in ``*.html`` and for
    Markdown in ``*.md``. The filter ``safe`` marks what is markup already.

    Parameters
    ----------
    template : str
        Name of the file.
    **values
        What its expressions see.
    """
    return _environment().get_template(template).render(values)


def document(title: str, body: str, style: str) -> str:
    """Return a whole page around a body that is markup already.

    Parameters
    ----------
    title : str
        What the browser shows as its name; any text.
    body : str
        The body as markup.
    style : str
        A style sheet.
    """
    return render("plain.html", title=title, body=body, style=style, sortable=False)


class Rendered:
    """What prints as text and shows as a page.

    ``_shown`` returns the name of its templates, such as ``report`` for ``report.txt`` and
    ``report.html``, and what their expressions see.
    """

    def _shown(self) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError

    def __str__(self) -> str:
        name, values = self._shown()
        return render(f"{name}.txt", **values)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return fragment(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a page without any outside address; also written to ``path`` if one is given.

        Parameters
        ----------
        path : str or path, default=None
            Where to write it; None only returns it.
        """
        name, values = self._shown()
        html = render(f"{name}.html", layout="base.html", **values)
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(html)
        return html


def fragment(shown: Rendered, *, styled: bool = True) -> str:
    """Return what is shown as one HTML element, for notebooks and other pages.

    Parameters
    ----------
    shown : Rendered
        A report or an audit.
    styled : bool, default=True
        Whether it brings its style and script, which another page may have already.
    """
    name, values = shown._shown()
    return render(f"{name}.html", layout="fragment.html", styled=styled, **values)


class _Lines(str):
    """Text that is printable already, line by line; in HTML it is escaped all the same."""


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
    from jinja2.runtime import Context
    from markupsafe import Markup

    @pass_context
    def clean(context: Context, value: Any) -> str:
        if isinstance(value, (Markup, _Lines)):
            return value
        text = printable(str(value))
        return _markdown(text) if str(context.name).endswith(".md") else text

    environment = Environment(
        loader=PackageLoader("longtail"),
        autoescape=lambda name: str(name).endswith(".html"),
        finalize=clean,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "aligned": lambda rows: _Lines(align(rows)),
        "bullet": lambda text: _Lines(wrapped(str(text), "  ! ", "    ")),
        "code": lambda text: _Lines(_code(printable(str(text)))),
        "count": "{:,.0f}".format,
        "indented": _indented,
        "line": lambda text: _Lines(printable(text)),
        "per_cent": per_cent,
        "prefixed": lambda text, prefix: prefix + text,
        "wrapped": lambda text, indent="": _Lines(wrapped(text, indent)),
    }
    return environment


def _indented(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return a table in which rows stand a little to the right, and the first column has no
    name.
    """
    (_, *heads), *others = rows
    return [["", *heads], *([f"  {name}", *cells] for name, *cells in others)]


def _markdown(text: str) -> str:
    """Return a text that cannot end its line or its cell, or become a link or a tag."""
    return re.sub(r"([\\`|\[\]])", r"\\\1", " ".join(text.split())).replace("<", "&lt;")


def _code(text: str) -> str:
    """Return Markdown that shows a text as code, in a cell of a table too."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " * (longest > 0)
    return f"{fence}{space}{text.replace('|', chr(92) + '|')}{space}{fence}"
