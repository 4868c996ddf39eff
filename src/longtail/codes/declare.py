"""``DECLARE``: labels projected on a few directions, regression, recovery by neighbours."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from longtail import persist
from longtail._native import core
from longtail._protocols import has_parameters
from longtail._validation import as_k, as_labels, as_seed, let_pass
from longtail.answers.label_filter import LabelFilter
from longtail.answers.topk import TopK
from longtail.calibrate.ranker import ProbabilityRanker
from longtail.codes.estimators import (
    NETWORKS,
    code_estimator,
    from_part,
    prototype_of,
    prototype_state,
    rows_for,
    sizes,
)
from longtail.codes.neighbor_code import NeighborCode
from longtail.codes.repetitions import checkpoint_of
from longtail.codes.svd_code import SVDCode
from longtail.deep import Network
from longtail.exceptions import ModelFormatError
from longtail.features.unit_length import unit_rows
from longtail.metrics import precision_at_k
from longtail.text import TextNetwork

__all__ = ["DECLARE"]

COMPRESSIONS = {"svd": SVDCode, "neighbors": NeighborCode}
TARGETS = ("codes", "unit")
PUBLISHED = {
    "compression": "svd",
    "targets": "codes",
    "recovery": "inner",
    "n_neighbors": 25,
    "weights": "similarity",
}
PUBLISHED_NETWORK: dict[str, Any] = {
    "hidden": 256,
    "loss": "squared",
    "learning_rate": 5e-4,
    "batch_size": 128,
    "epochs": 40,
    "dropout": 0.0,
    "weight_decay": 0.0,
}
_CHUNK = 1 << 24  # scores held at a time under a label filter
_OWN = ("n_components", "recovery", "n_neighbors", "weights", "n_probes", "n_jobs")


class DECLARE(ProbabilityRanker):
    """Compressed labels and recovery (Bornstein et al. 2024): c outputs instead of L.

    The label matrix is compressed to codes ``Z`` (n, c) that keep the similarities of near rows; a
    regressor h learns ``z = h(x)`` in the least-squares sense; labels come back from the training
    rows whose codes are most similar to z (``longtail.codes.NeighborCode`` and ``SVDCode``
    have the formulas and the choices of recovery).

    The regressor has c outputs, but the recovery keeps the codes and labels of all training rows
    (or, with ``recovery="labels"``, a vector per label).

    The defaults are those that won on held-out training rows of our data sets
    (docs/coded-models.md). ``DECLARE.as_published()`` is the method of the paper: a truncated SVD,
    a network, and the vote by inner products.

    Parameters
    ----------
    n_components : int or None
        c; None for 200, or the number of rows or labels if that is less.
    estimator : str or estimator
        "linear" (``Ridge``), "network" (``longtail.Network``), or one of these, or a
        ``TextNetwork``, with its parameters; None for the network where torch is installed.
    compression : str
        "neighbors" for codes fitted to near rows (``NeighborCode``), or "svd" for those of the
        truncated SVD, ``Z = Y V_c`` (the paper), which take less time.
    targets : str
        "unit" scales every row of Z to unit length before it is learnt, so that rows with many or
        frequent labels do not outweigh the others in the squared error. Neighbours by inner product
        or angle do not change with the length of a query, so nothing is lost. "codes" regresses Z
        as it is (the paper).
    recovery : str
        "cosine" (the vote of neighbours by angle, without hubs), "inner" (the paper's vote) or
        "labels" (through V; smallest, and better where rows have many labels).
    n_neighbors, weights, n_probes : int; str; int or None
        As in ``SVDCode``.
    n_pairs, n_steps : int
        Of "neighbors", as in ``NeighborCode``.
    random_state, n_jobs : int, Generator, RandomState or None; int or None
        The same seed gives the same bits for any number of threads.

    After ``fit``: ``code_`` (an ``SVDCode`` or a ``NeighborCode``), ``estimator_``.

    Prefer it to ``MACH`` for the smallest network and the fastest training, where frequent labels
    decide; what c directions cannot express, above all rare labels, no regressor brings back:
    ``ceiling`` tells how much that is.

    >>> import longtail as lt
    >>> model = lt.DECLARE(n_components=2, n_neighbors=2)
    >>> model = model.fit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]], [[0], [1], [0]])
    >>> model.predict_topk([[0.9, 0.0]], k=1).indices
    array([[0]], dtype=int32)
    """

    type_tag = "declare"

    code_: SVDCode
    estimator_: Any

    def __init__(
        self,
        *,
        n_components: int | None = None,
        estimator: Any = "linear",
        compression: str = "neighbors",
        targets: str = "unit",
        recovery: str = "cosine",
        n_neighbors: int = 25,
        weights: str = "similarity",
        n_probes: int | None = None,
        n_pairs: int = 50,
        n_steps: int = 10,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.estimator = estimator
        self.compression = compression
        self.targets = targets
        self.recovery = recovery
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.n_probes = n_probes
        self.n_pairs = n_pairs
        self.n_steps = n_steps
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def as_published(cls, **params: Any) -> DECLARE:
        """Return the setting of the paper (Bornstein et al. 2024), with ``params`` changed.

        The truncated SVD, its codes as they are for targets, the vote of 25 neighbours by inner
        product, and a network with one hidden layer of 256, trained by Adam with a step of 5e-4 on
        batches of 128. The paper does not tell the loss, the epochs and the regularisation: here
        they are the squared error, at most 40, and none. Its c is 50 to 200, by data set: pass
        ``n_components``. ``estimator="network"`` takes our settings of the network instead, and
        ``estimator="linear"`` needs no torch.

        Parameters
        ----------
        **params : object
            Parameters that are to differ.

        >>> DECLARE.as_published(n_components=100).recovery
        'inner'
        """
        estimator = params.pop("estimator", None)
        if estimator is None:
            estimator = Network(**PUBLISHED_NETWORK)
        return cls(estimator=estimator, **{**PUBLISHED, **params})

    def fit(self, X: Any, Y: Any, *, checkpoint: str | os.PathLike[str] | None = None) -> Any:
        """Learn from features ``X`` (n, d) and labels ``Y`` (n, L).

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        checkpoint : str or path, default=None
            A folder for what the estimator keeps while it is trained, if it is a network.
        """
        return self._learn(X, Y, checkpoint=checkpoint)

    def _fit(self, X: Any, Y: Any, *, checkpoint: str | os.PathLike[str] | None = None) -> None:
        if self.compression not in COMPRESSIONS:
            raise ValueError(
                f"compression must be one of {', '.join(COMPRESSIONS)}, got {self.compression!r}"
            )
        if self.targets not in TARGETS:
            raise ValueError(f"targets must be one of {', '.join(TARGETS)}, got {self.targets!r}")
        seed = as_seed(self.random_state)
        regressor = code_estimator(self.estimator)
        options = {name: getattr(self, name) for name in _OWN}
        if self.compression == "neighbors":
            options.update(n_pairs=self.n_pairs, n_steps=self.n_steps)
        code = COMPRESSIONS[self.compression](random_state=seed, **options).fit(Y)
        regressor.set_params(n_jobs=self.n_jobs)
        wanted = regression_targets(code.codes_, self.targets)
        if isinstance(regressor, NETWORKS):
            regressor.set_params(random_state=seed)
            how = checkpoint_of(regressor.fit_targets, checkpoint)
            regressor.fit_targets(X, wanted, **how)
        else:
            regressor.fit(X, wanted)
        self.code_, self.estimator_ = code, regressor

    @property
    def reads_texts(self) -> bool:  # type: ignore[override]
        """Whether the regressor reads texts."""
        return isinstance(self.estimator, TextNetwork)

    def _rows(self, X: Any, *, fitted: bool = True) -> Any:
        known = self.n_features_in_ if fitted else None
        regressor = self.estimator_ if fitted else None
        return rows_for(code_estimator(self.estimator), regressor, X, known)

    def _set_sizes(self, X: Any, Y: Any) -> None:
        self.n_features_in_, self.n_labels_ = sizes(self.estimator_)[0], int(Y.shape[1])

    def _codes(self, X: Any) -> np.ndarray:
        self.estimator_.n_jobs = self.n_jobs
        if isinstance(self.estimator_, NETWORKS):
            return self.estimator_.decision_function(X)
        return self.estimator_.predict(X)  # type: ignore[no-any-return]

    def transform(self, X: Any) -> np.ndarray:
        """Return predicted codes ``z = h(x)``, (n, c) float32.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        """
        self._check_fitted()
        return self._codes(let_pass(self._rows(X)))

    def _predict_topk(self, X: Any, k: int) -> TopK:
        return self._decode(self._codes(let_pass(X)), k)

    def _predict_allowed(self, X: Any, k: int, labels: LabelFilter) -> TopK:
        """Return the k best allowed labels; those that no neighbour has come last among those of
        score 0.
        """
        codes = self._codes(let_pass(X))
        ids = np.empty((len(codes), k), np.int32)
        scores = np.empty((len(codes), k), np.float32)
        step = max(1, _CHUNK // self.n_labels_)
        for begin in range(0, len(codes), step):
            part = slice(begin, min(begin + step, len(codes)))
            full = self._decode(codes[part], self.n_labels_).to_csr().toarray()
            full = np.where(labels.allowed(part.start, part.stop), full, -np.inf)
            ids[part], scores[part] = core.topk_dense(full.astype(np.float32), k, 1)
        ids[scores == -np.inf] = -1
        return TopK._trusted(ids, scores, self.n_labels_)

    def _decode(self, codes: np.ndarray, k: int) -> TopK:
        self.code_.set_params(**{name: getattr(self, name) for name in _OWN})
        return self.code_.decode(codes, k)

    def oracle_topk(self, Y: Any, k: int = 5) -> TopK:
        """Return what the recovery makes of the true codes ``V_c^T y``: the answers of a perfect
        regressor.

        Parameters
        ----------
        Y : matrix of shape (n, L)
            Labels whose codes are decoded.
        k : int, default=5
            Answers per row.
        """
        self._check_fitted()
        return self._decode(self.code_.encode(Y), as_k(k))

    def ceiling(self, Y: Any, k: int = 1) -> float:
        """Return precision at k of ``oracle_topk``: about the most that a regressor can reach.

        Parameters
        ----------
        Y : matrix of shape (n, L)
            Labels whose codes are decoded.
        k : int, default=1
            Answers per row.
        """
        Y = as_labels(Y, n_labels=self.n_labels_)
        return float(precision_at_k(Y, self.oracle_topk(Y, k), k=k))

    def evaluate(self, X: Any, Y: Any, ks: tuple[int, ...] = (1, 3, 5)) -> dict[str, float]:
        """Return precision at each k, learned and with the true codes, side by side.

        ``longtail.evaluate`` says more about the learned answers.

        Parameters
        ----------
        X : matrix of shape (n, d)
            Rows of features.
        Y : matrix of shape (n, L), or list of lists of int
            Labels of the rows.
        ks : tuple, default=(1, 3, 5)
            Cut-offs.
        """
        Y = as_labels(Y, n_labels=self.n_labels_)
        top = self.predict_topk(X, max(ks))
        oracle = self.oracle_topk(Y, max(ks))
        out = {}
        for k in ks:
            out[f"precision@{k}"] = float(precision_at_k(Y, top, k=k))
            out[f"oracle_precision@{k}"] = float(precision_at_k(Y, oracle, k=k))
        return out

    def _get_state(self) -> persist.State:
        state = super()._get_state()
        estimator = state.params.pop("estimator")
        if has_parameters(estimator):
            state.parts["prototype"] = prototype_state(estimator)
        elif estimator is None or isinstance(estimator, str):
            state.meta["estimator"] = estimator
        else:
            raise TypeError(f"parameter estimator cannot be saved: {estimator!r}")
        state.parts["code"] = self.code_._get_state()
        state.parts["estimator"] = self.estimator_._get_state()
        return state

    def _set_state(self, state: persist.State) -> None:
        super()._set_state(state)
        self.estimator = state.meta.get("estimator")
        if "targets" not in state.params:  # models from before there was a choice
            self.targets = "codes"
        if "prototype" in state.parts:
            part = state.parts["prototype"]
            self.estimator = prototype_of(part)
        code = {cls.type_tag: cls for cls in COMPRESSIONS.values()}[state.parts["code"].type]
        self.code_ = code._from_state(state.parts["code"])
        self.estimator_ = from_part(state.parts["estimator"])
        if self.code_.n_labels_ != self.n_labels_:
            raise ModelFormatError("the code has another number of labels than the model")
        expected = (self.n_features_in_, self.code_.n_components_)
        if sizes(self.estimator_) != expected:
            raise ModelFormatError(
                f"the estimator should have {expected[0]} features and {expected[1]} outputs"
            )


def regression_targets(codes: np.ndarray, targets: str) -> np.ndarray:
    """Return what the regressor learns for the codes (n, c) of the training rows."""
    return unit_rows(codes) if targets == "unit" else codes
