"""Sphinx configuration: Markdown pages, furo theme, reference from the docstrings."""

from __future__ import annotations

from typing import Any

import longtail

project = "Longtail"
author = copyright = "The Longtail developers"
version = release = longtail.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Longtail {release}"
html_static_path = ["_static"]
html_css_files = ["longtail.css"]
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_type_aliases = {"ndarray": "numpy.ndarray"}
napoleon_google_docstring = False


def keep_pictures(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Indented blocks in docstrings are formulas and pictures: shown as they are written."""
    shown: list[str] = []
    for before, line in zip(["", *lines], lines, strict=False):
        deeper = line.startswith("    ") and not before.strip()
        text = next((x for x in reversed(shown) if x.strip()), "")
        if deeper and text and not text.startswith((" ", ">>>")) and not text.endswith("::"):
            shown += ["::", ""]
        shown.append(line)
    lines[:] = shown


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", keep_pictures, priority=400)
