"""Linear models: one classifier per label, flat or over a label tree."""

from longtail.linear.one_vs_all import OneVsAll

__all__ = ["OneVsAll"]
