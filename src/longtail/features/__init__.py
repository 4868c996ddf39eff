"""From raw input to features."""

from longtail.features.unit_rows import unit_rows

__all__ = ["unit_rows"]
