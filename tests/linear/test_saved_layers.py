"""Whatever stands in the arrays of a saved model: it is refused, or searched without harm."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_cases import make_rows

import longtail as lt
from longtail import persist
from longtail._models import from_state
from longtail.exceptions import ModelFormatError

X, Y = make_rows(n=80, n_labels=40)
MODEL = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[2, 6]), beam=4).fit(X, Y)
ARRAYS = sorted(MODEL._get_state().arrays)


def damaged(name: str, array: np.ndarray) -> persist.State:
    state = copy.deepcopy(MODEL._get_state())
    state.arrays[name] = array
    return state


def search(state: persist.State) -> None:
    """Loads and searches; a crash would take the test process with it."""
    model = from_state(state)
    for queries in (X, X.toarray()):
        for k in (1, 40):
            top = model.predict_topk(queries, k=k, beam=None)
            assert top.indices.shape == (80, k)
            assert ((top.indices >= -1) & (top.indices < 40)).all()
            assert not np.isnan(top.scores).any()


def test_the_arrays_as_saved() -> None:
    search(copy.deepcopy(MODEL._get_state()))
    assert len(ARRAYS) == 3 * 12 + 1


@pytest.mark.parametrize("name", [name for name in ARRAYS if not name.endswith(("value", "bias"))])
def test_values_out_of_range_are_refused(name: str) -> None:
    array = MODEL._get_state().arrays[name]
    limit = np.iinfo(array.dtype)
    for position in {0, len(array) // 2, len(array) - 1}:
        for value in {limit.max, limit.min, limit.max // 2} - {int(array[position])}:
            if name.endswith(("bucket_ptr", "entry_ptr", "buckets", "features", "child")):
                value = max(value, 0) or limit.max  # 0 may be a legal, merely wrong, value
            changed = array.copy()
            changed[position] = value
            with pytest.raises(ModelFormatError):
                from_state(damaged(name, changed))


@pytest.mark.parametrize("name", ARRAYS)
def test_other_lengths_and_types_are_refused(name: str) -> None:
    array = MODEL._get_state().arrays[name]
    longer = np.concatenate([array, array[-1:]])
    other = array.astype(np.float64 if array.dtype.kind != "f" else np.int32)
    for wrong in (array[:0], array[:-1], longer, other, array[:, None]):
        with pytest.raises(ModelFormatError):
            from_state(damaged(name, wrong))


@pytest.mark.parametrize("name", ARRAYS)
def test_a_missing_array_is_refused(name: str) -> None:
    state = copy.deepcopy(MODEL._get_state())
    del state.arrays[name]
    with pytest.raises(ModelFormatError, match=name):
        from_state(state)


@given(data=st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_mutation_is_refused_or_harmless(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(ARRAYS))
    array = MODEL._get_state().arrays[name].copy()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(array) - 1))
        if array.dtype.kind == "f":
            array[at] = data.draw(st.floats(width=32))
        elif data.draw(st.booleans()):
            array[at] = array[data.draw(st.integers(0, len(array) - 1))]
        else:
            info = np.iinfo(array.dtype)
            step = data.draw(st.sampled_from([-1, 1, 2, 16, 4096, info.max, info.min]))
            array[at] = min(max(int(array[at]) + step, info.min), info.max)
    with contextlib.suppress(ModelFormatError):
        search(damaged(name, array))


def test_weights_that_are_not_numbers() -> None:
    for value in (np.nan, np.inf, -np.inf):
        for name in ("layer0_bias", "layer1_value", "layer2_value", "layer2_bias"):
            array = MODEL._get_state().arrays[name].copy()
            array[::2] = value
            search(damaged(name, array))


def test_parts_and_facts_that_do_not_fit() -> None:
    def refused(change: Any, match: str) -> None:
        state = copy.deepcopy(MODEL._get_state())
        change(state)
        with pytest.raises(ModelFormatError, match=match):
            from_state(state)

    refused(lambda s: s.meta.update(n_layers=0), "at least one layer")
    refused(lambda s: s.meta.update(n_layers=2), "one label per leaf")
    refused(lambda s: s.meta.update(n_layers=2**31 - 1), "layer3")
    refused(lambda s: s.meta.update(n_features=3), "directory")
    refused(lambda s: s.meta.update(n_labels=39), "label_of_leaf")
    refused(lambda s: s.params.update(post_processor="softmax"), "post_processor")
    refused(lambda s: s.params.update(post_processor=["noop"]), "levels")
    refused(lambda s: s.parts.clear(), "tree")
    other = lt.tree.LabelTree(level_sizes=[3, 6]).fit(X, Y)._get_state()
    refused(lambda s: s.parts.update(tree=other), "the tree has levels of")
