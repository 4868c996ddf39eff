"""A saved model answers with the same bits, from mapped files, from memory, or from a pickle."""

from longtail.testing.saving import *  # noqa: F403
