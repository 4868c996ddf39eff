"""Settings of XRTransformer: those of the paper by data set, and what is chosen otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import longtail as lt
from longtail.text.xr_settings import (
    LARGEST_LEVEL,
    PRESETS,
    automatic_leaf,
    automatic_length,
    automatic_steps,
    steps_of,
)
from longtail.tree.shape import default_level_sizes

LABELS = {"eurlex-4k": 3_956, "wiki10-31k": 30_938, "amazoncat-13k": 13_330}
LABELS |= {"wiki-500k": 501_070, "amazon-670k": 670_091, "amazon-3m": 2_812_281}
# Levels of the first tree, and on how many of them the encoder is trained.
LEVELS: dict[str, tuple[list[int], int]] = {
    "eurlex-4k": ([16, 256], 3),
    "wiki10-31k": ([128, 2048], 3),
    "amazoncat-13k": ([128, 1024], 3),
    "wiki-500k": ([64, 512, 4096, 32_768], 4),
    "amazon-670k": ([128, 2048, 32_768], 3),
    "amazon-3m": ([128, 2048, 32_768], 3),
}
# Rows of the table of reference settings, in the order of LABELS.
NAMES = ("leaf", "branching", "min_codes", "refined_leaf", "refined_branching")
TREES = [
    (16, 16, 16, 16, 8),
    (16, 16, 128, 16, 16),
    (16, 8, 128, 16, 8),
    (16, 8, 64, 100, 32),
    (32, 16, 128, 100, 32),
    (100, 16, 128, 100, 32),
]
TRAINING = {
    "steps": [
        (600, 800, 1200),
        (1000, 1000, 400),
        (5000, 10_000, 30_000),
        (10_000, 10_000, 20_000, 20_000),
        (4000, 4000, 12_000),
        (10_000, 10_000, 10_000),
    ],
    "learning_rate": [5e-5, 5e-5, 5e-5, 1e-4, 1e-4, 1e-4],
    "warmup_steps": [100, 100, 1000, 5000, 200, 1000],
    "most_active": [1000, 1000, 10_000, 500, 500, 500],
    "max_length": [128, 256, 256, 128, 128, 128],
    "man_beam": [5, 20, 50, 5, 5, 20],
    "batch_size": [256] * 6,
    "output_learning_rate": [None] * 6,
    "bootstrap_cost": [100.0] * 6,
}
RANKER = {
    "positive_cost": [2, 4, 0.25, 4, 1, 8],
    "negative_cost": [4, 1, 0.5, 1, 1, 1],
    "upper_cost": [0.5, 1, 1, 1, 1, 1],
    "beam": [(75, 75, 100), 100, (75, 100), 50, 75, 50],
    "threshold": [1e-3, 1e-3, 1e-4, 1e-3, 1e-3, 1e-3],
    "cost_weights": ["normalized"] * 4 + [None, "normalized"],
    "bootstrap_counts": [True] * 4 + [False] * 2,
    "refined_min_codes": [None, None, 128, None, None, None],
    "rule": ["softmax", "rank", "softmax", "sigmoid", "softmax", "rank"],
    "candidates": [25, 100, 200, 50, 75, 50],
}


@pytest.mark.parametrize(("number", "name"), list(enumerate(LABELS)))
def test_presets_are_the_reference_settings(number: int, name: str) -> None:
    model = lt.XRTransformer(encoder="anything", preset=name)
    expected = dict(zip(NAMES, TREES[number], strict=True))
    expected |= {key: values[number] for key, values in {**TRAINING, **RANKER}.items()}
    assert {key: model._setting(key) for key in expected} == expected
    assert set(PRESETS[name]) <= set(expected), "every value of a preset is looked at here"
    assert model.dropout == 0.1 and model.clip == 1.0


@pytest.mark.parametrize("name", LABELS)
def test_levels_of_the_presets(name: str) -> None:
    model, n = lt.XRTransformer(encoder="anything", preset=name), LABELS[name]
    sizes = default_level_sizes(n, **model._tree_settings("", n))
    clusters, trained = LEVELS[name]
    assert sizes == [*clusters, n]
    levels = sum(size <= LARGEST_LEVEL for size in sizes)
    assert levels == trained == len(steps_of(model, levels, 1000))
    ranker = model._ranker(n)
    depth = len(default_level_sizes(n, **model._tree_settings("refined_", n)))
    assert ranker.post_processor == ["l3-hinge"] * (depth - 1) + ["noop"]
    assert ranker.negatives == ["tfn"] * (depth - 2) + ["tfn+man"]
    beam = model._setting("beam")
    assert ranker.beam == (list(beam) if isinstance(beam, tuple) else beam)
    cost = ranker.positive_weight * np.array(ranker.C), ranker.negative_weight * np.array(ranker.C)
    if name == "eurlex-4k":
        assert cost[0].tolist() == [1, 1, 1, 2] and cost[1].tolist() == [2, 2, 2, 4]


def test_a_preset_serves_other_data() -> None:
    model = lt.XRTransformer(encoder="anything", preset="eurlex-4k")
    for n, beams in ((10, []), (100, [100]), (1000, [75, 100]), (200_000, [75, 75, 75, 75, 100])):
        ranker = model._ranker(n)
        assert ranker.beam == beams and len(ranker.C) == len(beams) + 1
    own = lt.XRTransformer(encoder="anything", preset="eurlex-4k", man_beam=7, cost_weights=None)
    assert own._setting("man_beam") == 7 and own._setting("cost_weights") is None


def test_what_is_chosen_for_other_data() -> None:
    model = lt.XRTransformer(encoder="anything")
    for n in (20, 4_000, 40_000, 501_070, 670_091, 2_812_281, 10_000_000):
        sizes = default_level_sizes(n, **model._tree_settings("", n))
        finest = max(size for size in sizes if size <= LARGEST_LEVEL)
        assert finest == n or finest * 2 * automatic_leaf(n) > n
        assert sizes[0] <= 128 or len(sizes) == 1
    assert automatic_length(np.array([], int)) == 32 and automatic_length(np.full(9, 999)) == 256
    assert automatic_length(np.r_[np.full(99, 60), 500]) == 64
    assert automatic_steps(2_000_000, 256) == 78_125  # ten times through the rows
    assert automatic_steps(1000, 100) == 400  # forty times


@pytest.mark.parametrize(
    ("params", "n_levels", "expected"),
    [
        ({"steps": 80}, 3, [20, 20, 40]),
        ({"steps": 81}, 3, [20, 20, 41]),
        ({"steps": 7}, 1, [7]),
        ({"steps": (5, 6)}, 3, [5, 6, 6]),
        ({"steps": np.array([5, 6, 7])}, 2, [5, 6]),
        ({"steps": (5, 6), "resolutions": "last"}, 3, [0, 0, 17]),
        ({"steps": 9, "frozen_layers": -1}, 2, [0, 0]),
        ({}, 2, [200, 200]),
        ({}, 0, []),
    ],
    ids=repr,
)
def test_steps_of_levels(params: dict[str, Any], n_levels: int, expected: list[int]) -> None:
    model = lt.XRTransformer(**{"encoder": "anything", "batch_size": 100, **params})
    assert steps_of(model, n_levels, 1000) == expected


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"preset": "nothing"}, ValueError, "preset must be one of None, eurlex-4k"),
        ({"features": "all"}, ValueError, "features must be one of both"),
        ({"resolutions": "first"}, ValueError, "resolutions must be one of all, last"),
        ({"steps": -1}, ValueError, "steps must not be negative"),
        ({"steps": (3, -1)}, ValueError, "steps must not be negative"),
        ({"steps": 2.5}, TypeError, "steps must be a whole number"),
        ({"steps": (2.5, 3)}, TypeError, "steps must be a whole number"),
        ({"steps": "many"}, TypeError, "steps must be a whole number"),
        ({"steps": ()}, TypeError, "steps must be a whole number"),
        ({"man_beam": 0}, ValueError, "man_beam must be at least 1"),
        ({"most_active": 0.5}, TypeError, "most_active"),
        ({"positive_cost": 0}, ValueError, "positive_cost must be positive"),
        ({"upper_cost": "a"}, TypeError, "upper_cost must be a number"),
        ({"vectorizer": "tfidf"}, TypeError, "vectorizer must be a Tfidf"),
        ({"max_length": 0}, ValueError, "max_length"),
        ({"beam": ()}, ValueError, "beam must be a number"),
        ({"beam": (5, 0)}, ValueError, "beam must be at least 1"),
        ({"leaf": 0}, ValueError, "leaf must be at least 1"),
        ({"refined_branching": 1}, ValueError, "branching must be at least 2"),
        ({"threshold": -1.0}, ValueError, "threshold must be finite"),
        ({"cost_weights": "many"}, ValueError, "cost_weights must be one of"),
    ],
    ids=repr,
)
def test_settings_that_cannot_be(params: dict[str, Any], error: Any, message: str) -> None:
    """They are refused before a text is read."""
    with pytest.raises(error, match=message):
        lt.XRTransformer(**{"encoder": "average", "device": "cpu", **params}).fit(None, None)
