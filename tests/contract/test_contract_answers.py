"""Answers are well formed in every corner, and depend on nothing but the data and the seed."""

from longtail.testing.answers import *  # noqa: F403
