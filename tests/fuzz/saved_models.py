"""Models to damage: one line of ``MODELS`` for every kind of saved model.

A line is a name and a function that saves a model to the folder it is given. A new kind joins with
a line of its own; what is in its folder besides the manifest and the arrays is damaged byte by
byte. The golden models of every version of the format are among them. ``exercise`` asks a model for
all it can do.
"""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from text_models import text_models

import longtail as lt
from longtail import codes
from longtail._blocks import BlockRows
from longtail.persist import State
from longtail.propensity import FixedPropensity
from longtail.tagger import PlainTexts

__all__ = ["GOLDEN", "MODELS", "exercise", "tags"]

GOLDEN = Path(__file__).parents[1] / "persist" / "golden"
TEXTS = [f"{a} {b} words" for a in ("paper", "wifi", "login") for b in ("jam", "slow", "lost")] * 2
LABELS = [[t.split()[0], *([t.split()[1]] if i % 2 else [])] for i, t in enumerate(TEXTS)]


def _data() -> tuple[Any, sp.csr_matrix]:
    data = lt.data.make_longtail(n=60, d=20, L=12, random_state=0)
    return data.train.X, data.train.Y


X, Y = _data()
BLOCKS = lt.features.beside(X, np.random.default_rng(1).standard_normal((60, 4)))
NAMES = [f"l{i}" for i in range(12)]
P = np.linspace(0.1, 1, 12)
TREE = lt.tree.LabelTree(leaf=3, branching=2)
NEAREST = lt.baselines.NearestNeighbors(n_neighbors=3)
ETA = lt.TopK.from_scores(np.random.default_rng(0).random((60, 12), np.float32), 6)


def _tagger(**how: Any) -> lt.Tagger:
    return lt.Tagger(**how).fit(TEXTS, LABELS)


def _hashed() -> lt.Tagger:
    return _tagger(model="one-vs-all", vectorizer=lt.Tfidf(n_features=1 << 20, min_df=1))


def _given() -> lt.Tagger:
    return lt.Tagger(model="xr-linear").fit(X, Y, label_names=NAMES)


def _with_report() -> lt.Tagger:
    tagger = _tagger(model="popularity")
    report = tagger.evaluate(TEXTS, LABELS, n_resamples=0)
    tagger.keep_report(report, tagger.lean_curve(TEXTS, tagger.truth(LABELS)))
    return tagger


MODELS: dict[str, Callable[[Path], None]] = {
    "tagger": lambda path: _tagger(model="xr-linear").save(path),
    "tagger-hashed": lambda path: _hashed().save(path),
    "tagger-given": lambda path: _given().save(path),
    "tagger-rule": lambda path: _tagger(model="popularity", rule=lt.decide.TopKRule(2)).save(path),
    "tagger-report": lambda path: _with_report().save(path),
    "plain-texts": lambda path: PlainTexts().fit(TEXTS).save(path),
    "tfidf": lambda path: lt.Tfidf(ngram_range=(1, 2)).fit(TEXTS).save(path),
    "tfidf-char": lambda path: lt.Tfidf(analyzer="char_wb").fit(TEXTS).save(path),
    "xr-linear": lambda path: lt.XRLinear(tree=TREE).fit(X, Y).calibrate(X, Y).save(path),
    "one-vs-all": lambda path: lt.OneVsAll(missing_labels=lt.JainPropensity()).fit(X, Y).save(path),
    "one-vs-all-blocks": lambda path: lt.OneVsAll().fit(BLOCKS, Y).save(path),
    "xr-linear-blocks": lambda path: lt.linear.compact(lt.XRLinear(tree=TREE).fit(BLOCKS, Y)).save(
        path
    ),
    "ensemble": lambda path: lt.Ensemble(models=[lt.XRLinear(), NEAREST]).fit(X, Y).save(path),
    "ensemble-learned": lambda path: (
        lt.Ensemble(models=[lt.XRLinear(), NEAREST], rule="learned").fit(X, Y).save(path)
    ),
    "ensemble-of-parts": lambda path: (
        lt.Ensemble(models=[(lt.Tfidf(min_df=1), lt.OneVsAll()), (lt.Tfidf(min_df=1), NEAREST)])
        .fit(TEXTS, [[i % 3] for i in range(len(TEXTS))])
        .save(path)
    ),
    "nearest-neighbors": lambda path: NEAREST.fit(X, Y).save(path),
    "nearest-neighbors-dense": lambda path: NEAREST.fit(X.toarray(), Y).save(path),
    "popularity": lambda path: lt.baselines.Popularity().fit(X, Y).name_labels(NAMES).save(path),
    "mach": lambda path: lt.MACH(n_buckets=5, estimator="linear").fit(X, Y).save(path),
    "declare": lambda path: lt.DECLARE(n_components=4, estimator="linear").fit(X, Y).save(path),
    "hash-code": lambda path: codes.HashCode(n_buckets=5, n_repetitions=3).fit(Y).save(path),
    "svd-code": lambda path: codes.SVDCode(n_components=4).fit(Y).save(path),
    "neighbor-code": lambda path: codes.NeighborCode(n_components=4).fit(Y).save(path),
    "ridge": lambda path: codes.Ridge().fit(X, Y.toarray()).save(path),
    "label-tree": lambda path: lt.tree.LabelTree(leaf=3).fit(X, Y).save(path),
    "jain-propensity": lambda path: lt.JainPropensity().fit(Y).save(path),
    "richards-propensity": lambda path: (
        lt.propensity.RichardsPropensity().fit(Y, propensity=P).save(path)
    ),
    "direct-propensity": lambda path: (
        lt.propensity.DirectPropensity().fit(Y, Y_queried=Y).save(path)
    ),
    "joint-propensity": lambda path: (
        lt.propensity.JointPropensity(max_iter=2).fit(Y, X=X).save(path)
    ),
    "fixed-propensity": lambda path: FixedPropensity().fit(propensity=P).save(path),
    "top-k-rule": lambda path: lt.decide.TopKRule(3).save(path),
    "weighted-top-k": lambda path: _asked(lt.decide.WeightedTopK("psp", k=3, propensity=P)).save(
        path
    ),
    "threshold-rule": lambda path: lt.decide.Threshold("macro_f1").fit(ETA, Y).save(path),
    "frank-wolfe": lambda path: lt.FrankWolfe("macro_f1", k=3).fit(ETA, Y).save(path),
    "online-rule": lambda path: _asked(lt.decide.OnlineRule("macro_f1", k=3)).save(path),
    "block-coordinate-ascent": lambda path: lt.BlockCoordinateAscent("macro_f1", k=3).save(path),
}
MODELS |= text_models(TEXTS, LABELS)
for golden in sorted(GOLDEN.glob("v*/*/")):
    if golden.name != "everything":  # which is no model
        MODELS[f"{golden.parent.name}-{golden.name}"] = functools.partial(shutil.copytree, golden)


def _asked(rule: Any) -> Any:
    rule.select(ETA)
    return rule


def tags(state: State) -> Iterator[str]:
    """The type tags of a state and of its parts."""
    yield state.type
    for part in state.parts.values():
        yield from tags(part)


def exercise(model: Any) -> int:
    """Asks a model for all it can do; what it cannot do with these arguments it has to say. Returns
    how many questions were answered.
    """
    answered = 0
    for ask in _questions(model):
        try:
            ask()
            answered += 1
        except (AttributeError, LookupError):
            pass
        except (MemoryError, OSError, TypeError, ValueError):
            pass
    return answered


def _questions(model: Any) -> Iterator[Callable[[], Any]]:
    if isinstance(model, lt.Tagger):
        yield from _of_a_tagger(model)
    elif hasattr(model, "predict_topk"):
        yield from _of_a_ranker(model)
    elif hasattr(model, "predict"):
        yield lambda: model.predict(X)
    if hasattr(model, "transform_one"):
        yield lambda: model.transform(TEXTS)
        yield lambda: model.transform_one(TEXTS[0])
        yield lambda: model.get_feature_names_out()
    if hasattr(model, "select"):
        yield lambda: model.select(ETA)
        yield lambda: model.select(ETA, include=[1, 2, 3])
    if hasattr(model, "encode"):
        yield lambda: model.encode(Y)
        yield lambda: model.decode(np.ones((3, np.shape(model.encode(Y))[1]), np.float32), 3)
        yield lambda: model.neighbors(np.ones((2, 4), np.float32))
    if hasattr(model, "ancestors"):
        yield lambda: model.ancestors(0)
        yield lambda: model.node_labels(Y, 0)
    if hasattr(model, "inverse_"):
        yield lambda: model.inverse_
        yield lambda: model.describe()
    yield lambda: repr(model)
    yield lambda: model._get_state()


def _of_a_tagger(tagger: lt.Tagger) -> Iterator[Callable[[], Any]]:
    yield lambda: tagger.predict(TEXTS[:3], k=3)
    yield lambda: tagger.predict(TEXTS[:3], k=2, tail=0.5, exclude=["jam"])
    yield lambda: tagger.predict(X[:3], k=2)  # one that was fitted on features
    yield lambda: tagger.explain(TEXTS[0])
    yield lambda: tagger.trained_on(TEXTS)
    yield lambda: tagger.report_page()


def _of_a_ranker(model: Any) -> Iterator[Callable[[], Any]]:
    width = getattr(model, "n_features_in_", None)
    if getattr(model, "reads_texts", False):
        yield lambda: model.predict_topk(TEXTS[:3], k=3)
        yield lambda: model.predict_topk(TEXTS[:3], k=2, include=[0, 2])
        yield lambda: model.embed(TEXTS[:1])
        yield lambda: model.decision_function(["", "\ud800 " + "paper " * 1000])
    elif isinstance(width, int) and width <= 1 << 20:
        rows = sp.random(5, width, min(1.0, 8 / max(width, 1)), "csr", np.float32, 0)
        yield lambda: model.predict_topk(rows, k=3)
        yield lambda: model.predict_topk(rows, k=5, include=[0, 2, 3])
        yield lambda: model.predict_topk(rows.toarray(), k=40) if width < 1000 else None
        if width >= 4:
            blocks = BlockRows(rows[:, :-4].tocsr(), np.ones((5, 4), np.float32))
            yield lambda: model.predict_topk(blocks, k=3)
            yield lambda: model.predict_topk(blocks, k=5, include=[0, 2, 3])
        yield lambda: model.predict_proba_topk(rows, k=3)
        yield lambda: model.explain(rows[0], 1)
        yield lambda: model.label_profile(1)
        yield lambda: model.kneighbors(rows)


if __name__ == "__main__":
    for kind, save in MODELS.items():
        save(Path(sys.argv[1]) / kind)
