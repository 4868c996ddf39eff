"""Formats of the field, data sets, and the currency of predictions."""

from longtail.data.topk import TopK

__all__ = ["TopK"]
