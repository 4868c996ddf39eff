"""Sphinx configuration: Markdown pages, furo theme, reference from the docstrings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import longtail

sys.path.insert(0, str(Path(__file__).parent))
import docstrings

project = "Longtail"
author = copyright = "The Longtail developers"
version = release = longtail.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Longtail {release}"
html_static_path = ["_static"]
html_css_files = ["longtail.css"]
html_show_sphinx = False
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "monokai"

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", docstrings.process)
