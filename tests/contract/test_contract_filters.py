"""Label filters act inside the model: if k labels are allowed, the k best of them come back."""

from longtail.testing.filters import *  # noqa: F403
