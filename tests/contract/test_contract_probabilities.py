"""Calibrated probabilities keep their word on new rows, and the ranking as it was."""

from longtail.testing.probabilities import *  # noqa: F403
