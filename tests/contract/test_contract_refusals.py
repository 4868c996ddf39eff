"""What cannot be right is refused at once, with a message that says what to do."""

from longtail.testing.refusals import *  # noqa: F403
