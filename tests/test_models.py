"""The table of type tags."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import longtail as lt
from longtail._models import TABLE
from longtail.base import Estimator


def test_every_tag_leads_to_its_class() -> None:
    for tag, home in TABLE.items():
        module, _, name = home.partition(":")
        cls = getattr(importlib.import_module(module), name)
        assert issubclass(cls, Estimator)
        assert cls.type_tag == tag
    assert list(TABLE) == sorted(TABLE)


def test_what_is_not_a_ranker_is_saved_too(tmp_path: Path) -> None:
    model = lt.JainPropensity(a=0.5, b=0.4).fit([[0], [0, 1], [0]])
    model.save(tmp_path / "p")
    found = lt.load(tmp_path / "p", verify=True)
    assert found.get_params() == model.get_params()
    np.testing.assert_array_equal(found.propensity_, model.propensity_)


def test_a_model_is_loaded_once_until_its_files_change(tmp_path: Path) -> None:
    data = lt.data.make_longtail(n=60, d=20, L=9, random_state=0).train
    lt.OneVsAll().fit(data.X, data.Y).save(tmp_path / "m")
    first = lt.load(tmp_path / "m", once=True)
    assert lt.load(str(tmp_path / "m"), once=True) is first
    assert lt.load(tmp_path / "m") is not first
    lt.OneVsAll().fit(data.X[:, :9], data.Y).save(tmp_path / "m", overwrite=True)
    assert lt.load(tmp_path / "m", once=True).n_features_in_ == 9
    with pytest.raises(FileNotFoundError):
        lt.load(tmp_path / "none", once=True)
