"""What is compared: a name for the table, the adapter that runs it, and its settings.

Peers run with the defaults of their Python interface, except where the settings say otherwise;
``note`` is printed under the table, ``environment`` holds variables of the processes. ``skip``
names data sets on which a system is left out unless ``--all`` is given, with the reason, which the
table repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["DATA_SETS", "SYSTEMS", "System"]

DATA_SETS = ("Bibtex", "Delicious", "CiteULike-t", "TIB-SID-en", "DebDeps-src")
LARGE = ("CiteULike-t", "TIB-SID-en", "DebDeps-src")


@dataclass(frozen=True)
class System:
    adapter: str
    settings: Mapping[str, Any]
    note: str = ""
    skip: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def _skipping(reason: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, reason)


def _longtail(expression: str, note: str = "", **environment: str) -> System:
    return System("longtail", {"make": expression}, note, environment=environment)


DENSE = "weights of all labels are dense doubles: 14 GB, hours of training"
HOURS = "one classifier per label over all rows: about an hour"

SYSTEMS = {
    "Longtail XRLinear": _longtail("lt.XRLinear(random_state=0, n_jobs=n_threads)", "default"),
    "Longtail XRLinear, AVX2": _longtail(
        "lt.XRLinear(random_state=0, n_jobs=n_threads)",
        "as on a machine without AVX-512",
        LONGTAIL_SIMD="avx2",
    ),
    "Longtail 3 XRLinear": _longtail(
        "lt.Ensemble(models=[lt.XRLinear(threshold=0.03, random_state=s, n_jobs=n_threads) "
        "for s in range(3)])",
        "the quality setting: three seeds, scores averaged, fewer weights dropped",
    ),
    "Longtail OneVsAll": _longtail("lt.OneVsAll(random_state=0, n_jobs=n_threads)", "default"),
    "Longtail OneVsAll, AVX2": _longtail(
        "lt.OneVsAll(random_state=0, n_jobs=n_threads)",
        "as on a machine without AVX-512",
        LONGTAIL_SIMD="avx2",
    ),
    "Longtail NearestNeighbors": _longtail(
        "lt.baselines.NearestNeighbors(n_neighbors=20, n_jobs=n_threads)",
        "what a trained model has to beat",
    ),
    "PECOS XR-Linear": System(
        "pecos", {}, "default: PIFA, 16 branches, 100 labels a leaf, beam 10"
    ),
    "omikuji Parabel": System("omikuji", {}, "default: three trees, balanced, 2 branches"),
    "omikuji Bonsai": System(
        "omikuji",
        {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3},
        "three trees, not balanced, 100 branches, depth 3",
    ),
    "napkinXC PLT": System("napkinxc", {"model": "PLT"}, "default"),
    "napkinXC BR": System("napkinxc", {"model": "BR"}, "default", _skipping(HOURS, *LARGE)),
    "LibMultiLabel tree": System(
        "libmultilabel",
        {"method": "train_tree", "options": "-B 1"},
        "default (one tree, 100 branches), with a bias",
    ),
    "LibMultiLabel 1vsrest": System(
        "libmultilabel",
        {"method": "train_1vsrest", "options": "-B 1"},
        "default, with a bias",
        {**_skipping(HOURS, "CiteULike-t"), **_skipping(DENSE, "TIB-SID-en", "DebDeps-src")},
    ),
    "fastText": System(
        "fasttext",
        {"loss": "ova", "lr": 0.1, "epoch": 50},
        "one logistic loss a label (a higher rate diverges on Delicious); features without weights",
        _skipping("cost of an epoch is rows times labels: about an hour", *LARGE),
    ),
    "fastText hs": System(
        "fasttext",
        {"loss": "hs", "lr": 0.5, "epoch": 25},
        "hierarchical softmax; features without weights",
    ),
    "scikit-learn OneVsRest": System(
        "sklearn",
        {},
        "LinearSVC, default; time and memory of its child processes included",
        {**_skipping(HOURS, "CiteULike-t"), **_skipping(DENSE, "TIB-SID-en", "DebDeps-src")},
    ),
}
