"""The models of the comparison, trained with given settings.

All networks have one hidden layer of 256 and no validation split of their own: settings, the number
of epochs among them, are chosen beforehand on held-out training rows (``tune.py``), and the network
is then trained on all of them. "pruned" has as many weights left as the network of DECLARE, over
both layers together.
"""

from __future__ import annotations

import time
from typing import Any

from joblib import parallel_config
from rows import COMPONENTS, Rows, measured, precisions

import longtail as lt
from longtail.codes import Ridge, SVDCode
from longtail.codes.declare import regression_targets

HIDDEN = 256
RECOVERIES = ("inner", "cosine", "labels")
AGGREGATIONS = ("logits", "mean", "min", "median")


class Training:
    """One training on ``rows`` of the data set ``name``; ``run`` returns what was found."""

    def __init__(
        self,
        name: str,
        rows: Rows,
        *,
        seed: int = 0,
        device: str = "cpu",
        n_jobs: int = 2,
        curve: bool = False,
        at_once: int = 1,
        codes: dict[Any, SVDCode] | None = None,
    ) -> None:
        self.name, self.rows, self.seed = name, rows, seed
        self.device, self.n_jobs, self.with_curve = device, n_jobs, curve
        self.at_once = at_once  # repetitions of MACH
        self.codes = codes  # of SVDs that earlier trainings of the same rows have left here
        self.c = COMPONENTS[name]

    def warm_up(self, kind: str, setting: dict[str, Any]) -> None:
        """Trains on a few rows, so that what is compiled on first use is not timed."""
        few = self.rows
        few = Rows(few.X[:600], few.Y[:600], few.X_test[:10], few.Y_test[:10])
        Training(self.name, few, device=self.device).run(kind, {**setting, "epochs": 1})

    def run(self, kind: str, setting: dict[str, Any]) -> dict[str, Any]:
        return getattr(self, "_" + kind.replace("-", "_"))(**setting)  # type: ignore[no-any-return]

    def network(self, **setting: Any) -> lt.Network:
        return lt.Network(
            **{
                "hidden": HIDDEN,
                "validation": 0.0,
                "device": self.device,
                "random_state": self.seed,
                "n_jobs": self.n_jobs,
                **setting,
            }
        )

    def _curve(self, answer: Any, offset: float = 0.0) -> tuple[list[list[float]], Any]:
        """A list that fills with (seconds, P@1 on the test rows) while a network is trained."""
        points: list[list[float]] = []

        def look(epoch: int, seconds: float, network: lt.Network) -> None:
            points.append([offset + seconds, precisions(self.rows.Y_test, answer(network))[0]])

        return points, look if self.with_curve else None

    def _network(self, **setting: Any) -> dict[str, Any]:
        points, look = self._curve(lambda net: net.predict_topk(self.rows.X_test, k=5))
        model = self.network(**setting).fit(self.rows.X, self.rows.Y, after_epoch=look)
        return {
            "": measured(self.rows, model.predict_topk(self.rows.X_test, k=5)),
            "outputs": self.rows.Y.shape[1],
            "parameters": model.n_parameters_,
            "seconds": model.history_[-1]["seconds"],
            "curve": points,
        }

    def _pruned(self, **setting: Any) -> dict[str, Any]:
        return self._network(keep=HIDDEN * (self.rows.X.shape[1] + self.c), **setting)

    def _declare(self, targets: str = "codes", **setting: Any) -> dict[str, Any]:
        began = time.perf_counter()
        code = self._code()
        compressing = time.perf_counter() - began
        points, look = self._curve(
            lambda net: code.decode(net.decision_function(self.rows.X_test), 5), compressing
        )
        wanted = regression_targets(code.codes_, targets)
        network = self.network(**setting).fit_targets(self.rows.X, wanted, after_epoch=look)
        codes = network.decision_function(self.rows.X_test)
        return {
            **self._recovered(code, codes),
            "outputs": self.c,
            "parameters": network.n_parameters_,
            "seconds": compressing + network.history_[-1]["seconds"],
            "compressing": compressing,
            "curve": points,
        }

    def _code(self) -> SVDCode:
        kept = {} if self.codes is None else self.codes
        key = (self.name, self.seed, id(self.rows))
        if key not in kept:
            code = SVDCode(n_components=self.c, random_state=self.seed, n_jobs=self.n_jobs)
            kept[key] = code.fit(self.rows.Y)
        return kept[key].set_params(recovery="inner")

    def _declare_unit(self, **setting: Any) -> dict[str, Any]:
        return self._declare("unit", **setting)

    def _recovered(self, code: SVDCode, codes: Any) -> dict[str, Any]:
        truth, found = code.encode(self.rows.Y_test), {}
        for recovery in RECOVERIES:
            code.set_params(recovery=recovery)
            found[recovery] = measured(self.rows, code.decode(codes, 5))
            found[f"oracle {recovery}"] = measured(self.rows, code.decode(truth, 5))
        return {**found, "": found["inner"]}

    def _declare_linear(
        self, compression: str = "svd", targets: str = "codes", l2: float = 1.0
    ) -> dict[str, Any]:
        model = lt.DECLARE(
            n_components=self.c,
            estimator=Ridge(l2=l2),
            compression=compression,
            targets=targets,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )
        began = time.perf_counter()
        model.fit(self.rows.X, self.rows.Y)
        seconds = time.perf_counter() - began
        return {
            **self._recovered(model.code_, model.transform(self.rows.X_test)),
            "outputs": self.c,
            "parameters": model.estimator_.coef_.size + model.estimator_.intercept_.size,
            "seconds": seconds,
        }

    def _declare_neighbors(self, **setting: Any) -> dict[str, Any]:
        return self._declare_linear("neighbors", **setting)

    def _declare_neighbors_unit(self, **setting: Any) -> dict[str, Any]:
        return self._declare_linear("neighbors", "unit", **setting)

    def _declare_linear_unit(self, **setting: Any) -> dict[str, Any]:
        return self._declare_linear(targets="unit", **setting)

    def _mach(self, size: Any = (None, None), **setting: Any) -> dict[str, Any]:
        return self._any_mach(size, self.network(**setting))

    def _mach_one(self, size: Any = (None, None), **setting: Any) -> dict[str, Any]:
        """A single repetition, for its time: all R take R times as long, or as many machines."""
        model = lt.MACH(
            n_buckets=size[0],
            n_repetitions=size[1],
            estimator=self.network(**setting),
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )
        began = time.perf_counter()
        model.fit(self.rows.X, self.rows.Y, repetitions=[0])
        seconds = time.perf_counter() - began
        return {
            "seconds": model.code_.n_repetitions_ * seconds,
            "": measured(self.rows, model.predict_topk(self.rows.X_test, k=5)),
        }

    def _mach_linear(self, size: Any = (None, None), **setting: Any) -> dict[str, Any]:
        return self._any_mach(size, lt.OneVsAll(**setting))

    def _any_mach(self, size: Any, estimator: Any) -> dict[str, Any]:
        model = lt.MACH(
            n_buckets=size[0],
            n_repetitions=size[1],
            estimator=estimator,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )
        began = time.perf_counter()
        with parallel_config("loky", n_jobs=self.at_once):
            model.fit(self.rows.X, self.rows.Y)
        found: dict[str, Any] = {"seconds": time.perf_counter() - began}
        found["outputs"] = model.n_outputs_
        found["size"] = [model.code_.n_buckets_, model.code_.n_repetitions_]
        found["parameters"] = sum(
            m.n_parameters_ if isinstance(m, lt.Network) else m.coef_.nnz
            for m in model.repetitions_.values()
        )
        for aggregation in AGGREGATIONS:
            model.set_params(aggregation=aggregation)
            found[aggregation] = measured(self.rows, model.predict_topk(self.rows.X_test, k=5))
        return {**found, "": found["logits"]}

    def _one_vs_all(self, **setting: Any) -> dict[str, Any]:
        model = lt.OneVsAll(**{"random_state": self.seed, "n_jobs": self.n_jobs, **setting})
        began = time.perf_counter()
        model.fit(self.rows.X, self.rows.Y)
        return {
            "seconds": time.perf_counter() - began,
            "": measured(self.rows, model.predict_topk(self.rows.X_test, k=5)),
            "outputs": self.rows.Y.shape[1],
            "parameters": model.coef_.nnz,
        }
