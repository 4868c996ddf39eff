"""No ranker gets around the contract."""

from __future__ import annotations

import importlib

from contract_cases import CASES, WITH_TEXTS, WITH_TORCH

from longtail._models import TABLE
from longtail.base import Ranker

NOT_TRAINED = {"sharded"}  # the front of a model that was; tests/serve/test_label_shards.py


def test_every_ranker_that_can_be_loaded_has_a_case() -> None:
    covered = {type(case.make()) for case in [*CASES, *WITH_TORCH, *WITH_TEXTS]}
    for tag, home in TABLE.items():
        if tag in NOT_TRAINED:
            continue
        module, _, name = home.partition(":")
        cls = getattr(importlib.import_module(module), name)
        if issubclass(cls, Ranker):
            assert cls in covered, f"add {name} to contract_cases.CASES"
    assert len({case.name for case in CASES}) == len(CASES)
