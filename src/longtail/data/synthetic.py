"""``make_longtail``: synthetic data with the statistics that make real label sets hard.

The model, in the order in which it is drawn:

1.  Labels have popularity ranks r = 1 … L and target frequencies c_r = A (r + L / 1000)^-s, the law
    of Zipf and Mandelbrot, at least 1 and at most a quarter of the rows, with A such that they add
    up to the number of positives wanted. Label ids are in random order.
2.  The most frequent labels are general, the others belong to topics, each with its share of
    frequent and rare ones. Each row has one topic (topics get rows in proportion to the frequencies
    of their labels) and draws its labels by frequency: some general, and of the others four out of
    five from its own topic. As long as there are at least as many positives as labels, every label
    is given one training row first.
3.  Each topic has a lexicon of words and each label a signature of eight words: six from its
    topic's lexicon, two of its own. Each word of a row is noise (drawn from the whole vocabulary by
    Zipf's law), or from the lexicon of its topic, or from the signature of one of its labels.
4.  Word counts become TF-IDF values, (1 + ln count) (1 + ln((1 + n) / (1 + df))) with the document
    frequencies df of the training rows, and rows are scaled to unit length.

A linear model can learn this, frequent labels well and rare ones in part: labels of a topic share
words, so that a label seen once is easily mistaken for its neighbours.
"""

from __future__ import annotations

import numbers
from typing import Any

from longtail._native import n_threads
from longtail._validation import as_seed
from longtail.data.dataset import Dataset, Split
from longtail.data.published import Benchmark
from longtail.data.registry import benchmark
from longtail.data.synthetic_world import Sizes, World

__all__ = ["make_longtail"]


def make_longtail(
    n: int | None = None,
    d: int | None = None,
    L: int | None = None,
    *,
    n_test: int | None = None,
    labels_per_row: float | None = None,
    features_per_row: float | None = None,
    exponent: float | None = None,
    n_topics: int | None = None,
    noise: float = 0.5,
    like: str | None = None,
    scale: float = 1.0,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Dataset:
    """Return a synthetic data set with power-law labels and features that depend on them.

    Parameters
    ----------
    n, d, L : int or None
        Training rows, features, labels.
    n_test : int or None
        Test rows; a fifth of ``n`` if not given.
    labels_per_row, features_per_row : float or None
        Averages; 3 and 50 if not given.
    exponent : float or None
        s of the power law; 1 if not given. Larger is more skewed.
    n_topics : int or None
        Number of topics; by default such that a topic has 100 labels, or ten times as many as a
        row where that is more.
    noise : float
        Share of words that have nothing to do with the row's labels, 0 to 0.75.
    like, scale : str or None; float
        The name of a registered data set whose published n, n_test, d, L, labels and features per
        row are to be used, with n, n_test, d and L multiplied by ``scale``. So the points per label
        stay as they are. Where the imbalance of the data set is published (``pos80``) the exponent
        is fitted to it. Arguments that are given come first; a figure that is neither given nor
        published is asked for.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        Seed; threads. The same seed gives the same bits for any number of threads.

    Returns a ``Dataset`` with ``train`` and ``test``, CSR float32 throughout; a and b are those of
    ``like``. The averages per row are met exactly. ``like="Amazon-3M"``, 2.8 million labels
    and 1.7 million rows, takes about 2 GB and a minute or two.

    Refuses sizes below 1, averages above the number of labels or features, and figures that are
    missing.

    >>> ds = make_longtail(1000, 500, 200, random_state=0)
    >>> ds
    Dataset('longtail', train: 1000 rows, test: 200 rows, 500 features, 200 labels)
    >>> bool((ds.train.Y.sum(axis=0) > 0).all())
    True
    >>> make_longtail(like="Amazon-670K", scale=0.001).n_labels
    670
    """
    published: dict[str, Any] = {}
    a = b = None
    name = "longtail"
    if like is not None:
        entry = benchmark(like)
        published = _published(entry, _number(scale, "scale", 1e-9, 1e3))
        a, b, name = entry.a, entry.b, f"longtail-like-{entry.name}"
    elif scale != 1.0:
        raise ValueError("scale needs like=, the data set whose sizes are to be scaled")
    given = {
        "n": n,
        "n_test": n_test,
        "d": d,
        "L": L,
        "labels_per_row": labels_per_row,
        "features_per_row": features_per_row,
        "exponent": exponent,
    }
    published.update({key: value for key, value in given.items() if value is not None})
    sizes = _sizes(published, like, n_topics, noise)
    world = World(sizes, as_seed(random_state), n_threads(n_jobs))
    train = world.rows(sizes.n, 0, cover=True)
    test = world.rows(sizes.n_test, sizes.n, cover=False) if sizes.n_test else None
    idf = world.idf(train[0])
    return Dataset(
        train=world.weighed(*train, idf),
        test=Split() if test is None else world.weighed(*test, idf),
        name=name,
        a=a,
        b=b,
    )


def _published(entry: Benchmark, scale: float) -> dict[str, Any]:
    """Return what is known of a registered data set, scaled, under the names used here."""
    counts = {
        "n": entry.n_train,
        "n_test": entry.n_test,
        "d": entry.n_features,
        "L": entry.n_labels,
    }
    facts: dict[str, Any] = {
        key: max(1, round(value * scale)) for key, value in counts.items() if value is not None
    }
    averages = {
        "labels_per_row": (entry.labels_per_point, "L"),
        "features_per_row": (entry.features_per_point, "d"),
    }
    for key, (value, bound) in averages.items():
        if value is not None:  # a strong reduction may leave fewer labels than a row had
            facts[key] = min(value, facts.get(bound, value) / 4)
    return {**facts, "pos80": entry.pos80}


def _sizes(facts: dict[str, Any], like: str | None, n_topics: Any, noise: Any) -> Sizes:
    for key, what in (("n", "training rows"), ("d", "features"), ("L", "labels")):
        if key not in facts:
            lacking = f": it is not published for {like}" if like else ""
            raise TypeError(f"give {key}, the number of {what}{lacking}")
    n, d, L = (_whole(facts[key], key, 1, 2**31 - 1) for key in ("n", "d", "L"))
    labels = _number(facts.get("labels_per_row", min(3.0, L / 4)), "labels_per_row", 0, L)
    features = _number(facts.get("features_per_row", min(50.0, d / 4)), "features_per_row", 0, d)
    exponent = facts.get("exponent")
    if n_topics is None:
        n_topics = max(1, min(int(L / max(100.0, 10 * labels)), n // 4))
    return Sizes(
        n=n,
        n_test=_whole(facts.get("n_test", n // 5), "n_test", 0, 2**31 - 1),
        d=d,
        L=L,
        labels_per_row=labels,
        features_per_row=features,
        exponent=None if exponent is None else _number(exponent, "exponent", 0, 4),
        pos80=facts.get("pos80"),
        n_topics=_whole(n_topics, "n_topics", 1, min(n, L)),
        noise=_number(noise, "noise", 0, 0.75),
    )


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    whole = int(value)
    if not least <= whole <= most:
        raise ValueError(f"{name} must lie between {least} and {most}, got {value}")
    return whole


def _number(value: Any, name: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if not least <= number <= most:
        raise ValueError(f"{name} must lie between {least} and {most}, got {value}")
    return number
