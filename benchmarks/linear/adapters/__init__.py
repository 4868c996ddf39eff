"""One file for each system: how it is trained, saved, loaded and asked. See ``adapter.py``.

These modules run in the environments of the systems, which have NumPy and SciPy but not Longtail.
"""
