"""``rule="learned"``: what it learns from and what it answers; no part answers its own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail._models import from_state
from longtail._native import core
from longtail.answers.topk import TopK
from longtail.base import Ranker
from longtail.data.paired_rows import PairedRows
from longtail.data.text_rows import TextRows
from longtail.ensemble import Part, learning
from longtail.ensemble.learned_fusion import Fusion
from longtail.exceptions import ModelFormatError
from longtail.testing.problems import as_texts, make_problem

L = 30


class Oracle(Ranker):
    """Knows the labels of rows by their number, the first feature; right for some labels only.

    ``asked``: numbers of the rows it was asked about; ``learned``: those it was fitted on.
    """

    learned: list[set[int]] = []  # noqa: RUF012
    asked: list[set[int]] = []  # noqa: RUF012

    def __init__(self, *, truth: Any = None, knows: Any = None, seed: int = 0) -> None:
        self.truth = truth
        self.knows = knows
        self.seed = seed

    def _fit(self, X: Any, Y: Any) -> None:
        self.rows_ = {int(v) for v in np.asarray(X.todense())[:, 0]}
        Oracle.learned.append(self.rows_)

    def _predict_topk(self, X: Any, k: int) -> TopK:
        numbers = np.asarray(X.todense())[:, 0].astype(int)
        Oracle.asked.append({*numbers.tolist()})
        scores = np.empty((len(numbers), self.n_labels_), np.float32)
        for i, n in enumerate(numbers):
            noise = np.random.default_rng([self.seed, int(n)]).random(self.n_labels_)
            scores[i] = 3 * noise  # of a label it does not know, as loud as of one it does
            scores[i, self.knows] = noise[self.knows] + 2 * self._true(n)
        return TopK._trusted(*core.topk_dense(scores, k, 1), self.n_labels_)

    def _true(self, n: int) -> np.ndarray:
        return self.truth[n, self.knows].toarray().ravel()


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Rows that are their number, and labels, frequent ones first; 3,000 are many here."""
    monkeypatch.setattr(learning, "_FEW", 2000)
    rng = np.random.default_rng(0)
    share = np.where(np.arange(L) < 5, 0.4, 0.04)
    Y = sp.csr_matrix((rng.random((6000, L)) < share).astype(np.float32))
    return sp.csr_matrix(np.arange(6000, dtype=np.float32)[:, None]), Y


def oracles(Y: Any) -> list[Any]:
    head, tail = np.arange(5), np.arange(5, L)
    return [Oracle(truth=Y, knows=head, seed=1), Oracle(truth=Y, knows=tail, seed=2)]


def test_each_label_listens_to_the_source_that_knows_it(known: Any) -> None:
    X, Y = known
    models, train, test = oracles(Y), slice(0, 3000), slice(3000, 6000)
    mean = lt.Ensemble(models=models).fit(X[train], Y[train])
    learned = lt.Ensemble(models=models, rule="learned").fit(X[train], Y[train])
    has = np.diff(Y[test].indptr) >= 1
    found = [
        float(lt.metrics.precision_at_k(Y[test][has], m.predict_topk(X[test][has], 1), k=1))
        for m in (mean, learned)
    ]
    assert found[1] > 0.95 and found[1] > found[0] + 0.1
    proba = learned.predict_proba_topk(X[test], k=5)
    assert lt.metrics.expected_calibration_error(Y[test], proba, k=5) < 0.02


@pytest.mark.parametrize("how", [{}, {"folds": 3}, {"refit": False}, {"held_out": 0.3}])
def test_no_part_answers_a_row_it_was_trained_on(known: Any, how: dict[str, Any]) -> None:
    X, Y = known
    Oracle.learned, Oracle.asked = [], []
    model = lt.Ensemble(models=oracles(Y), rule="learned", **how).fit(X[:3000], Y[:3000])
    folds = how.get("folds", 1)
    assert len(Oracle.asked) == 2 * folds
    for fitted, asked in zip(Oracle.learned, Oracle.asked, strict=False):
        assert asked and not asked & fitted
    everything = {*range(3000)}
    if how.get("refit", True):
        assert all(member.rows_ == everything for member in model.members_)
    else:
        assert {len(member.rows_) for member in model.members_} == {2700}
    if folds > 1:
        assert set.union(*Oracle.asked) == everything


def test_of_few_rows_all_take_part_in_turn(known: Any) -> None:
    X, Y = known
    few = lt.Ensemble(models=oracles(Y), rule="learned").fit(X[:2000], Y[:2000])
    assert few.fusion_ is not None and few.fusion_.held_out["rows"] == 2000
    assert (learning.n_trainings(2000), learning.n_trainings(2001)) == (5, 1.9)


def test_validation_rows_are_learned_on_and_nothing_is_held_out(known: Any) -> None:
    X, Y = known
    Oracle.learned, Oracle.asked = [], []
    model = lt.Ensemble(models=oracles(Y), rule="learned")
    model.fit(X[:3000], Y[:3000], validation=(X[3000:4000], Y[3000:4000]))
    assert Oracle.learned == [{*range(3000)}] * 2
    assert Oracle.asked == [{*range(3000, 4000)}] * 2
    assert model.fusion_ is not None and model.fusion_.held_out["rows"] == 1000
    with pytest.raises(TypeError, match="pair"):
        model.fit(X[:50], Y[:50], validation=X)
    with pytest.raises(ValueError, match="labels"):
        model.fit(X[:50], Y[:50], validation=(X[:3], Y[:3, :4]))
    with pytest.raises(ValueError, match="rows"):
        model.fit(X[:50], Y[:50], validation=(X[:3], Y[:4]))


class Memory(Ranker):
    """Answers the label of a row, its first feature, if it has seen it, and else any that it has,
    equally sure.
    """

    def _fit(self, X: Any, Y: Any) -> None:
        self.seen_ = np.unique(Y.indices)

    def _predict_topk(self, X: Any, k: int) -> TopK:
        asked = np.asarray(X.todense())[:, 0].astype(int)
        other = self.seen_[np.random.default_rng(0).integers(len(self.seen_), size=len(asked))]
        top = TopK.nothing(len(asked), k, self.n_labels_)
        top.indices[:, 0] = np.where(np.isin(asked, self.seen_), asked, other)
        top.scores[:, 0] = 1
        return top


@pytest.mark.parametrize("how", [{}, {"folds": 5}, {"refit": False}])
def test_the_only_row_of_a_label_tells_nothing_where_it_is_held_out(how: dict[str, Any]) -> None:
    """A label of one row is never found in that row; that says nothing about other rows."""
    n = 1200  # labels of one row, and as many of two
    labels = np.concatenate([np.arange(2 * n), np.arange(n, 2 * n)])
    X = sp.csr_matrix(labels.astype(np.float32)[:, None])
    Y = sp.csr_matrix((np.ones(len(labels), np.float32), (np.arange(len(labels)), labels)))
    model = lt.Ensemble(models=[Memory()], rule="learned", **how).fit(X, Y)
    seen = model.members_[0].seen_
    once = X[:n][np.isin(labels[:n], seen)]
    top = model.predict_proba_topk(once, k=1)
    assert (top.indices[:, 0] == np.asarray(once.todense())[:, 0]).all()
    assert top.scores.mean() > 0.6
    valid = lt.Ensemble(models=[Memory()], rule="learned")
    valid.fit(X[n:], Y[n:], validation=(X[:n], Y[:n]))  # rows that are not among the counted ones
    assert valid.predict_proba_topk(X[n : n + 5], k=1).scores.max() < 0.01


def test_labels_of_as_many_rows_each() -> None:
    """How many rows of a label are held out says nothing about other rows."""
    labels = np.repeat(np.arange(700), 4)
    X = sp.csr_matrix(labels.astype(np.float32)[:, None])
    Y = sp.csr_matrix((np.ones(len(labels), np.float32), (np.arange(len(labels)), labels)))
    model = lt.Ensemble(models=[Memory()], rule="learned").fit(X, Y)
    assert model.predict_proba_topk(X[:50], k=1).scores.min() > 0.9


def test_features_of_pairs_are_those_of_the_docstring() -> None:
    """The kernel against a few lines of NumPy."""
    rng = np.random.default_rng(0)
    sources = []
    for k in (4, 3):
        ids = np.stack([rng.permutation(9)[:k] for _ in range(20)]).astype(np.int32)
        values = -np.sort(-rng.random((20, k)).astype(np.float32), axis=1)
        ids[rng.random(20) < 0.2, -1] = -1
        sources.append((ids, values))
    log_counts = rng.random(9).astype(np.float32)
    args = [s[0] for s in sources], [s[1] for s in sources]
    offsets, labels, features = core.collect_pairs(*args, log_counts, 2)
    assert features.shape[1] == 5 * 2 + 4 + 1
    for row in range(20):
        here = slice(offsets[row], offsets[row + 1])
        union = sorted({int(i) for ids, _ in sources for i in ids[row] if i >= 0})
        assert labels[here].tolist() == union
        for label, x in zip(union, features[here], strict=True):
            expected, p, inverse = [], [], []
            for ids, values in sources:
                at = np.flatnonzero(ids[row] == label)
                best = values[row, 0]
                if len(at):
                    v, rank = values[row, at[0]], at[0] + 1
                    expected += [v, v - best, 1 / rank, np.log(rank), 1]
                    p.append(v)
                    inverse.append(1 / rank)
                else:
                    expected += [0, -best, 0, np.log(ids.shape[1] + 1), 0]
            expected += [len(p), sum(p) / 2, max(p), sum(inverse) / 2, log_counts[label]]
            np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def test_parts_of_many_kinds_over_texts(tmp_path: Path) -> None:
    problem = make_problem(n=300)
    texts = as_texts(problem.X)
    words, called = lt.Tfidf(min_df=1), [f"feature{i}" for i in range(12)]
    model = lt.Ensemble(
        models=[
            Part(words, lt.OneVsAll(), label_texts=True, name="with label texts"),
            (words, lt.baselines.NearestNeighbors()),
            (lt.Tfidf(min_df=1, ngram_range=(1, 2)), lt.OneVsAll()),
        ],
        rule="learned",
    ).fit(texts[:200], problem.Y[:200], label_texts=called)
    assert model.vectorizers_.of_part == [0, 0, 1] and len(model.vectorizers_.fitted) == 2
    assert model.reads_texts and model.reads_label_texts
    assert model.score(texts[200:], problem.Y[200:]) > 0.8
    model.save(tmp_path / "m")
    found = lt.load(tmp_path / "m", verify=True)
    assert found.predict_topk(texts, k=12) == model.predict_topk(texts, k=12)
    assert found.part_names == ["with label texts", "NearestNeighbors", "OneVsAll"]
    assert repr(found) == repr(model)
    again = found.fit(texts[:200], problem.Y[:200], label_texts=called)
    assert again.predict_topk(texts, k=12) == model.predict_topk(texts, k=12)
    with pytest.raises(ValueError, match="label_texts"):
        model.fit(texts, problem.Y)


def test_rows_of_tokens_and_features() -> None:
    pytest.importorskip("torch")
    problem = make_problem(n=300)
    texts = as_texts(problem.X)
    small = {"encoder": "average", "epochs": 8, "batch_size": 16, "learning_rate": 0.02}
    small |= {"device": "cpu", "n_jobs": 1, "onnx": False}
    network = lt.TextNetwork(**small)
    rows = PairedRows(network._rows(texts, fitted=False), problem.X)
    labels = rows[:12]
    model = lt.Ensemble(
        models=[
            Part(None, lt.OneVsAll(), label_texts=True),
            network,
            lt.UniDEC(**small, head_learning_rate=0.01),
            (2, lt.baselines.NearestNeighbors(weights="softmax")),
        ],
        rule="learned",
        folds=2,
    ).fit(rows[:200], problem.Y[:200], label_texts=labels)
    assert model.score(rows[200:], problem.Y[200:]) > 0.5
    alone = model.answers_of_parts(rows[200:], k=3)
    vectors = model.members_[2].embed(rows[200:].tokens)
    assert alone["NearestNeighbors"] == model.members_[3].predict_topk(vectors, k=3)
    assert alone["OneVsAll"] == model.members_[0].predict_topk(problem.X[200:], k=3)


def test_one_pass_of_an_encoder_serves_all_that_share_it(monkeypatch: Any) -> None:
    pytest.importorskip("torch")
    problem = make_problem()
    texts = as_texts(problem.X)
    network = lt.TextNetwork(encoder="average", epochs=2, device="cpu", n_jobs=1, onnx=False)
    neighbors = lt.baselines.NearestNeighbors(weights="softmax")
    model = lt.Ensemble(models=[network, (0, neighbors)], rule="learned", folds=2)
    model.fit(texts, problem.Y)
    passes = []
    encode = lt.TextNetwork._encode
    monkeypatch.setattr(
        lt.TextNetwork, "_encode", lambda self, tokens: passes.append(1) or encode(self, tokens)
    )
    model.predict_topk(texts, k=3)
    assert len(passes) == 1
    model.predict_topk(texts, k=3, include=[0, 1, 2, 3])
    assert len(passes) == 2


def test_a_filter_does_not_change_what_a_label_is_worth(known: Any) -> None:
    X, Y = known
    model = lt.Ensemble(models=oracles(Y), rule="learned", candidates=10)
    model.fit(X[:3000], Y[:3000])
    whole = model.predict_topk(X[3000:3100], k=L)
    assert (np.sort(whole.indices, axis=1) == np.arange(L)).all(), "k asks for more than candidates"
    assert (np.diff(whole.scores, axis=1) <= 0).all() and whole.scores.min() > 0
    assert whole.head(5) == model.predict_topk(X[3000:3100], k=5)
    allowed = [3, 7, 20, 25]
    top = model.predict_topk(X[3000:3100], k=3, include=allowed)
    assert np.isin(top.indices, allowed).all()
    for row in range(100):
        scores = dict(zip(whole.indices[row].tolist(), whole.scores[row].tolist(), strict=True))
        best = max(allowed, key=scores.__getitem__)
        if scores[best] > 0.3:  # certainly a candidate
            assert top.indices[row, 0] == best and top.scores[row, 0] == np.float32(scores[best])


def test_what_each_part_adds(known: Any, tmp_path: Path) -> None:
    X, Y = known
    parts = [Part(None, o, name=n) for o, n in zip(oracles(Y), ("head", "tail"), strict=True)]
    model = lt.Ensemble(models=parts, rule="learned").fit(X[:3000], Y[:3000])
    rows, truth = X[3000:], Y[3000:]
    whole = float(lt.metrics.precision_at_k(truth, model.predict_topk(rows, 3), k=3))
    for name, top in model.answers_without_parts(rows, k=3).items():
        assert name in ("head", "tail")
        assert float(lt.metrics.precision_at_k(truth, top, k=3)) < whole - 0.05
    assert set(model.answers_of_parts(rows, k=3)) == set(model.part_seconds) == {"head", "tail"}
    plain = lt.Ensemble(models=[lt.baselines.Popularity()]).fit(X, Y)
    with pytest.raises(ValueError, match="learned"):
        plain.answers_without_parts(X)


def test_few_rows_and_no_hits() -> None:
    """Where nothing can be learned, the sources' probabilities are averaged."""
    X, Y = np.eye(4, dtype=np.float32), [[0], [1], [0], [1]]
    model = lt.Ensemble(
        models=[lt.OneVsAll(), lt.baselines.NearestNeighbors()], rule="learned"
    ).fit(X, Y)
    assert model.fusion_ is not None and not len(model.fusion_.trees.roots)
    assert ((model.predict_proba_topk(X, k=2).scores) <= 1).all()
    one = lt.Ensemble(models=[lt.baselines.Popularity()], rule="learned").fit(X[:1], [[0]])
    assert one.predict_topk(X, k=1).indices.ravel().tolist() == [0] * 4


def test_labels_come_and_go() -> None:
    problem = make_problem(n=400)
    trees = lt.XRLinear(tree=lt.tree.LabelTree(leaf=4, branching=2))
    model = lt.Ensemble(models=[lt.OneVsAll(), trees], rule="learned")
    model.fit(problem.X, problem.Y[:, :9])
    model.add_labels(problem.X, problem.Y[:, 9:], Y_old=problem.Y[:, :9])
    assert model.n_labels_ == 12
    assert model.score(problem.X, problem.Y) > 0.9
    hits = model.predict_topk(problem.X, k=1).indices[:, 0]
    assert (hits >= 9).any()
    model.remove_labels([0, 5])
    assert model.predict_topk(problem.X, k=10).n_labels == 10


def test_linear_members_take_fewer_bytes(tmp_path: Path) -> None:
    problem = make_problem(n=400)
    trees = lt.Ensemble(models=[lt.OneVsAll(), lt.OneVsAll(C=2.0)])
    model = lt.Ensemble(models=[trees, lt.baselines.NearestNeighbors()], rule="learned")
    model.fit(problem.X, problem.Y)
    before = model.predict_topk(problem.X, k=3)
    small = model.compacted(precision="int8")
    for own, others in zip(small.members_[0].members_, model.members_[0].members_, strict=True):
        assert own.nbytes < others.nbytes
    assert model.predict_topk(problem.X, k=3) == before
    after = small.predict_topk(problem.X, k=1)
    assert (after.indices == before.head(1).indices).mean() > 0.95
    small.save(tmp_path / "m")
    assert lt.load(tmp_path / "m").predict_topk(problem.X, k=1) == after
    with pytest.raises(TypeError, match="linear"):
        lt.Ensemble(models=[lt.baselines.Popularity()]).fit(problem.X, problem.Y).compacted()


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([(0, lt.baselines.NearestNeighbors())], ValueError, "earlier"),
        ([lt.OneVsAll(), (0, lt.baselines.NearestNeighbors())], TypeError, "OneVsAll has none"),
        ([("words", lt.OneVsAll())], TypeError, "representation"),
        ([(lt.Tfidf(), lt.TextNetwork())], TypeError, "reads texts itself"),
        ([lt.Tfidf()], TypeError, "must be rankers"),
        ("models", TypeError, "list of rankers"),
        ([], ValueError, "empty"),
    ],
)
def test_models_that_are_none(models: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        lt.Ensemble(models=models, rule="learned").fit(np.eye(3), [[0], [1], [0]])


@pytest.mark.parametrize(
    "how", [{"held_out": 0.0}, {"held_out": 1.5}, {"folds": 1}, {"folds": 10**6}, {"n_jobs": 0}]
)
def test_settings_that_are_none(known: Any, how: dict[str, Any]) -> None:
    X, Y = known
    with pytest.raises(ValueError, match=next(iter(how))):
        lt.Ensemble(models=[lt.baselines.Popularity()], rule="learned", **how).fit(
            X[:2500], Y[:2500]
        )


def test_texts_for_a_part_that_takes_features() -> None:
    texts = TextRows(["one two", "two three", "three four"] * 5)
    mixed = lt.Ensemble(models=[(lt.Tfidf(min_df=1), lt.OneVsAll()), lt.OneVsAll()])
    with pytest.raises(TypeError, match="put it into a pair"):
        mixed.fit(texts, [[0], [1], [0]] * 5)


def test_members_that_are_fitted_already_cannot_be_learned() -> None:
    fitted = lt.baselines.Popularity().fit(np.eye(3), [[0], [1], [0]])
    with pytest.raises(ValueError, match="learned"):
        lt.Ensemble.of([fitted], rule="learned")


def test_a_damaged_fusion_is_refused(known: Any) -> None:
    X, Y = known
    model = lt.Ensemble(
        models=[lt.baselines.Popularity(), lt.baselines.NearestNeighbors()], rule="learned"
    )
    good = model.fit(X[:2500], Y[:2500])._get_state()
    assert isinstance(from_state(good).fusion_, Fusion)
    for name, value in (
        ("log_counts", np.zeros(L - 1, np.float32)),
        ("log_counts", np.full(L, np.nan, np.float32)),
        ("source1_knots", np.zeros(3)),
        ("trees_child", np.zeros(1, np.int32)),
    ):
        state = model._get_state()
        state.arrays[name] = value
        with pytest.raises(ModelFormatError):
            from_state(state)
    state = model._get_state()
    del state.arrays["trees_roots"]
    with pytest.raises(ModelFormatError, match="trees_roots"):
        from_state(state)
