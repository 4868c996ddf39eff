"""The library's own exceptions, for what the built-in ones cannot say."""

from __future__ import annotations

import os

__all__ = ["DataFormatError", "MissingDependencyError", "ModelFormatError"]


class DataFormatError(ValueError):
    """A data file does not follow its format. Says where, and what was expected.

    Attributes: ``path`` (or a stand-in such as ``<stream>``), ``line`` and ``column`` (both counted
    from 1, or None where they make no sense), ``message``.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.message = message
        self.path = None if path is None else os.fspath(path)
        self.line = line
        self.column = column
        place = ":".join(str(p) for p in (self.path, line, column) if p is not None)
        super().__init__(f"{place}: {message}" if place else message)


class ModelFormatError(ValueError):
    """A saved model is truncated, altered, of a newer format, or not a model at all."""


class MissingDependencyError(ImportError):
    """An optional package is needed. ``extra`` names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed: "
            f"pip install 'longtail[{extra}]'"
        )
