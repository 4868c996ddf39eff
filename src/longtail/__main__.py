"""``python -m longtail``: the command line."""

import sys

from longtail.cli import main

if __name__ == "__main__":
    sys.exit(main())
