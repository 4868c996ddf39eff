"""The command line: ``longtail train``, ``predict``, ``evaluate``, ``serve`` and the rest.

``app`` holds the commands, one module each; ``main`` runs it and turns errors into one line and an
exit code. Modules import the library inside their functions: ``longtail --help`` has no need of it.
"""

from longtail.cli.entry import main

__all__ = ["main"]
