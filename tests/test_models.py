"""The table of type tags."""

from __future__ import annotations

import importlib

from longtail.base import Estimator
from longtail.models import TABLE


def test_every_tag_leads_to_its_class() -> None:
    for tag, home in TABLE.items():
        module, _, name = home.partition(":")
        cls = getattr(importlib.import_module(module), name)
        assert issubclass(cls, Estimator)
        assert cls.type_tag == tag
    assert list(TABLE) == sorted(TABLE)
