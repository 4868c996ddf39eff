"""Parameters follow scikit-learn: stored as given, cloned, set, shown; and its tools work."""

from longtail.testing.parameters import *  # noqa: F403
