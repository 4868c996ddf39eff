"""Linear models: one classifier per label, flat or over a label tree."""

from longtail.linear.compaction import compact
from longtail.linear.one_vs_all import OneVsAll
from longtail.linear.xr_linear import XRLinear

__all__ = ["OneVsAll", "XRLinear", "compact"]
