"""The command line: ``longtail train``, ``predict``, ``evaluate``, ``serve`` and the rest.

::

    DATA, options ──► reading ──► Dataset ──► training ──► a fitted Tagger, a report
                                              set aside,   │
                                              plan, fit,   ├──► story, output   what is said
                                              measure      └──► provenance      where it comes from

``app`` holds the commands, one module each; ``main`` runs it and turns errors into one line and an
exit code. Modules import the library inside their functions: ``longtail --help`` has no need of it.
"""

from longtail.cli.entry import main

__all__ = ["main"]
