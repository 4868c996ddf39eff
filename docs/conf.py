"""Sphinx configuration: Markdown pages, furo theme, reference from the docstrings."""

from __future__ import annotations

import longtail

project = "Longtail"
author = "The Longtail developers"
copyright = "The Longtail developers"
version = release = longtail.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
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
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "inherited-members": False, "show-inheritance": False}
default_role = "code"
