"""The Python interface of omikuji, on ``XRLinear`` and ``Ensemble``.

A program that does ``import omikuji`` runs on Longtail if this module stands in for it::

    from longtail.compat import omikuji          # change the import, or
    longtail.compat.omikuji.install()            # before the program imports omikuji

or, for a program that is not yours (Annif), put a file ``omikuji.py`` with the one line
``from longtail.compat.omikuji import *`` where Python finds it, in place of the package.

How the hyper-parameters are read:

    n_trees                         members of the ensemble, their scores averaged
    cluster_k, collapse_every_n_layers      children per node: k^(n + 1); with k = 1 labels are not
                                    divided, and stand below the root side by side
    min_branch_size                 most labels of a last cluster
    linear_c, linear_weight_threshold       C and threshold; linear_loss_type: HINGE is the squared
                                    hinge, as in omikuji, LOG the logistic loss
    centroid_threshold              label vectors are not cut here: anything but 0 is refused
    max_depth, cluster_balanced, cluster_eps, cluster_min_size, train_trees_1_by_1, linear_eps,
    linear_max_iter                 are accepted and have no effect: trees are balanced, so they are
                                    never deep, and the solver knows when it is done
    tree_structure_only             is refused

Training prints its hyper-parameters on standard output, in a line as omikuji's. A saved model knows
which file it was trained on; if one of that name lies beside it and has changed since, as when a
later training has failed, the model does not belong to the features any more, and ``load`` refuses
it.

Scores of a tree are products over the path of exp(-max(0, 1 - z)^2), as in omikuji (1 / (1 + e^-z)
for LOG). Models are saved in Longtail's own format; models saved by omikuji cannot be read. The
same data gives the same model, which omikuji does not promise.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import persist
from longtail._models import from_state
from longtail.data import read_xc
from longtail.ensemble import Ensemble
from longtail.linear import XRLinear
from longtail.tree import LabelTree

__all__ = ["HyperParam", "LossType", "Model", "init_logger", "install"]

__version__ = "0.5.1+longtail"
_MANY = 2**31 - 1  # of labels, or of children
_TRAINED_ON = "omikuji_trained_on"
_ENDS = 1 << 16  # bytes at both ends of a training file that are compared


class LossType(Enum):
    """Loss of the linear classifiers."""

    HINGE = 0
    LOG = 1


@dataclass
class HyperParam:
    """What omikuji's ``default_hyper_param`` returns, with its values."""

    n_trees: int = 3
    min_branch_size: int = 100
    max_depth: int = 20
    centroid_threshold: float = 0.0
    collapse_every_n_layers: int = 0
    linear_loss_type: int | LossType = 0
    linear_eps: float = 0.1
    linear_c: float = 1.0
    linear_weight_threshold: float = 0.1
    linear_max_iter: int = 20
    cluster_k: int = 2
    cluster_balanced: bool = True
    cluster_eps: float = 0.0001
    cluster_min_size: int = 2
    tree_structure_only: bool = False
    train_trees_1_by_1: bool = False

    def to_model(self, n_threads: int | None = None) -> Ensemble:
        """Return the ensemble, not yet fitted, that these parameters ask for."""
        if self.tree_structure_only:
            raise ValueError("tree_structure_only is not supported: there would be no model")
        if self.centroid_threshold:
            raise ValueError("centroid_threshold is not supported: leave it at 0")
        for name in ("n_trees", "min_branch_size", "max_depth", "cluster_k"):
            least = 2 if name == "min_branch_size" else 1
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        log = self._loss() is LossType.LOG
        leaf, branching = self.min_branch_size, self._branching()
        if branching == 1:  # nothing is ever divided
            leaf, branching = _MANY, 2
        trees = [
            XRLinear(
                tree=LabelTree(leaf=leaf, branching=branching),
                loss="logistic" if log else "squared_hinge",
                C=self.linear_c,
                threshold=self.linear_weight_threshold,
                post_processor="sigmoid" if log else "l2-hinge",
                random_state=seed,
                n_jobs=n_threads or None,
            )
            for seed in range(self.n_trees)
        ]
        return Ensemble(models=trees)

    def _loss(self) -> LossType:
        return LossType(self.linear_loss_type)

    def _branching(self) -> int:
        n, branching = self.collapse_every_n_layers, 1
        while n >= 0 and 1 <= branching < _MANY and self.cluster_k > 1:
            branching, n = branching * self.cluster_k, n - 1
        return min(branching, _MANY)

    def __str__(self) -> str:
        """As omikuji shows them.

        >>> print(HyperParam(cluster_k=16))
        HyperParam { n_trees: 3, ..., cluster: HyperParam { k: 16, ...
        """
        shown: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "linear_loss_type":
                value = self._loss().name.capitalize()
            elif isinstance(field.default, float):
                value = float(value)
            group, _, name = field.name.partition("_")
            if group in ("linear", "cluster"):
                shown.setdefault(group, {})[name] = value
            else:
                shown[field.name] = value
        return _shown(shown)


def _shown(fields: dict[str, Any]) -> str:
    """Return fields as Rust shows those of a struct."""
    parts = []
    for name, value in fields.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        text = text.replace("e-0", "e-")
        parts.append(f"{name}: {_shown(value) if isinstance(value, dict) else text}")
    return f"HyperParam {{ {', '.join(parts)} }}"


class Model:
    """A model with omikuji's methods; ``ensemble`` is Longtail's own object.

    >>> import tempfile, longtail as lt
    >>> data = lt.data.make_longtail(n=200, d=50, L=20)
    >>> path = tempfile.mkdtemp() + "/train.txt"
    >>> lt.write_xc(path, data.train.X, data.train.Y)
    >>> model = Model.train_on_data(path)
    Training model with hyper-parameters HyperParam { n_trees: 3, ...
    >>> best = model.predict([(3, 0.5), (7, 0.5)], top_k=2)
    >>> len(best), model.n_trees, model.n_features
    (2, 3, 50)
    """

    def __init__(self, ensemble: Ensemble, trained_on: dict[str, Any] | None = None) -> None:
        """Wrap an ensemble whose label names are the label ids of the training file.

        ``trained_on``: what tells this file from a later one of the same name.
        """
        self.ensemble = ensemble
        self._trained_on = trained_on
        self._labels = [int(name) for name in ensemble.label_names_ or ()]

    @classmethod
    def default_hyper_param(cls) -> HyperParam:
        """Return Parabel's setting."""
        return HyperParam()

    @classmethod
    def train_on_data(
        cls, data_path: str, hyper_param: HyperParam | None = None, n_threads: int | None = None
    ) -> Model:
        """Train on a file in the text format, ``N D L`` and a row per line."""
        parameters = hyper_param or HyperParam()
        model = parameters.to_model(n_threads)
        print(f"Training model with hyper-parameters {parameters}", flush=True)
        trained_on = _file_facts(data_path)
        X, Y = read_xc(data_path)
        used = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
        # A vocabulary may name many labels that no document has; a tree is better without them.
        model.fit(X, Y[:, used])
        return cls(model.name_labels([str(label) for label in used]), trained_on)

    @classmethod
    def load(cls, path: str) -> Model:
        """Read what ``save`` wrote."""
        try:
            state = persist.load(path)
            found = from_state(state)
        except (OSError, ValueError) as error:
            raise RuntimeError(f"Failed to load model from {path}: {error}") from error
        named = isinstance(found, Ensemble) and found.label_names_ is not None
        if not named or not all(name.isdecimal() for name in found.label_names_):
            raise RuntimeError(f"Failed to load model from {path}: it is no model of this kind")
        trained_on = state.meta.get(_TRAINED_ON)
        if isinstance(trained_on, dict):
            name = os.path.basename(str(trained_on.get("name")))
            beside = os.path.join(os.path.dirname(os.path.abspath(path)), name)
            if os.path.isfile(beside) and _file_facts(beside) != trained_on:
                raise RuntimeError(
                    f"Failed to load model from {path}: {beside} was written after it, and no "
                    "training on that has ended. The features have changed: train again"
                )
        return cls(found, trained_on)

    def save(self, path: str) -> None:
        """Write the model to a folder; one that is there is replaced, as omikuji does."""
        state = self.ensemble._get_state()
        if self._trained_on is not None:
            state.meta[_TRAINED_ON] = self._trained_on
        persist.save(path, state, overwrite=os.path.isdir(path))

    @property
    def n_features(self) -> int:
        return self.ensemble.n_features_in_

    @property
    def n_trees(self) -> int:
        return len(self.ensemble.members_)

    def predict(
        self,
        feature_value_pairs: Iterable[tuple[int, float]],
        beam_size: int = 10,
        top_k: int = 10,
    ) -> list[tuple[int, float]]:
        """Return ``[(label, score), …]`` of one row, best first.

        Refuses (AssertionError, as omikuji) features that repeat or are out of range.
        """
        pairs = sorted(feature_value_pairs, key=lambda pair: pair[0])
        columns = np.array([feature for feature, _ in pairs], np.int64)
        inside = not len(columns) or (columns[0] >= 0 and columns[-1] < self.n_features)
        assert inside and (np.diff(columns) > 0).all(), "Incorrect feature index"
        values = np.array([value for _, value in pairs], np.float32)
        row = sp.csr_matrix((values, columns, [0, len(pairs)]), shape=(1, self.n_features))
        return self.predict_batch(row, beam_size, top_k)[0]

    def predict_batch(
        self, X: Any, beam_size: int = 10, top_k: int = 10
    ) -> list[list[tuple[int, float]]]:
        """Return the same for many rows at once, which omikuji lacks and which is much faster."""
        model = self.ensemble
        if any(member.beam != beam_size for member in model.members_):  # type: ignore[attr-defined]
            for member in model.members_:
                member.set_params(beam=beam_size)
        top, ids = model.predict_topk(X, top_k), self._labels
        return [
            [(ids[i], score) for i, score in zip(labels, scores, strict=True) if i >= 0]
            for labels, scores in zip(top.indices.tolist(), top.scores.tolist(), strict=True)
        ]

    def densify_weights(
        self, max_sparse_density: float = 0.1, n_threads: int | None = None
    ) -> None:
        """Do nothing: weights are in a layout for search already."""

    def init_prediction_thread_pool(self, n_threads: int) -> None:
        """Set the number of threads for prediction; 0 is all cores."""
        for member in self.ensemble.members_:
            member.set_params(n_jobs=n_threads or None)


def init_logger() -> None:
    """Do nothing, for programs that call it: Longtail logs through ``logging``."""


def install() -> None:
    """Let ``import omikuji`` find this module, in this process."""
    sys.modules["omikuji"] = sys.modules[__name__]


def _file_facts(path: str) -> dict[str, Any]:
    """Return what tells one training file from another of the same name: its size, and both its
    ends.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        digest.update(file.read(_ENDS))
    return {"name": os.path.basename(path), "bytes": size, "sha256_of_ends": digest.hexdigest()}
