"""Models learn from rows of label texts, and nothing takes these rows for instances."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail._validation import n_instances
from longtail.augment import append_rows, gandalf

HAS_TORCH, HAS_TOKENIZERS = find_spec("torch"), find_spec("tokenizers")
N, L = 120, 8
NETWORK = {"hidden": 32, "epochs": 60, "batch_size": 16, "learning_rate": 0.05, "dropout": 0.0}
NETWORK |= {"validation": 0.0, "weight_decay": 0.0}


def problem() -> tuple[list[str], sp.csr_matrix, list[str]]:
    """Texts that name their label by a word; label 7 has none, and goes by the word "unseen"."""
    rng = np.random.default_rng(0)
    label = np.arange(N) % (L - 1)
    Y = np.zeros((N, L), np.float32)
    Y[np.arange(N), label] = 1
    Y[label == 1, 0] = 1  # label 1 comes with label 0
    texts = [f"word{j} noise{rng.integers(5)}" for j in label]
    return texts, sp.csr_matrix(Y), [f"word{j}" for j in range(L - 1)] + ["unseen"]


FEATURES = {
    "OneVsAll": lambda **p: lt.OneVsAll(**p),
    "OneVsAll(logistic)": lambda **p: lt.OneVsAll(loss="logistic", C=100, **p),
    "XRLinear": lambda **p: lt.XRLinear(tree=lt.tree.LabelTree(leaf=3, branching=2), **p),
    "Ensemble": lambda **p: lt.Ensemble(models=[lt.XRLinear(**p), lt.baselines.NearestNeighbors()]),
    "NearestNeighbors": lambda **p: lt.baselines.NearestNeighbors(**p),
    "MACH": lambda **p: lt.MACH(n_buckets=6, n_repetitions=6, estimator="linear", **p),
    "DECLARE": lambda **p: lt.DECLARE(n_components=8, **p),
}
if HAS_TORCH:
    FEATURES["Network"] = lambda **p: lt.Network(**{**NETWORK, **p})


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("dense", [False, True])
def test_models_learn_a_label_from_its_text_alone(name: str, dense: bool) -> None:
    texts, Y, words = problem()
    vectorizer = lt.Tfidf(min_df=1).fit(texts + words)
    X, Z = vectorizer.transform(texts), vectorizer.transform(words)
    if dense:
        X, Z = X.toarray(), Z.toarray()
    rows, targets = gandalf(Y, Z)
    assert 0 < targets.data.min() < 1  # soft
    model = FEATURES[name]().fit(*append_rows(X, Y, rows, targets))
    found = model.predict_topk(Z, k=2)
    if name != "DECLARE":  # whose ridge regression makes little of a single row
        assert found.indices[7, 0] == 7, "a label that no row has"
    assert set(found.indices[1]) == {0, 1}, "a label that comes with another"


@pytest.mark.skipif(not (HAS_TORCH and HAS_TOKENIZERS), reason="needs torch and tokenizers")
def test_text_networks_take_texts_and_tokens() -> None:
    texts, Y, words = problem()
    how = {"encoder": "average", "epochs": 30, "batch_size": 16, "learning_rate": 0.05}
    how |= {"device": "cpu", "n_jobs": 1, "onnx": False}
    both, labels = append_rows(texts, Y, *gandalf(Y, words))
    model = lt.TextNetwork(**how).fit(both, labels)
    assert model.predict_topk(words, k=1).indices[7, 0] == 7
    tokenizer = model.tokenizer_
    tokens = tokenizer.encode(texts)
    of_labels = tokenizer.encode([*words[:6], "", "unseen"])
    rows, targets = gandalf(Y, of_labels)
    assert len(rows) == 7
    more, labels = append_rows(tokens, Y, rows, targets)
    assert more.source == tokenizer and len(more) == N + 7
    again = lt.TextNetwork(**how).fit(more, labels, n_label_rows=7)
    assert again.predict_topk(words, k=1).indices[7, 0] == 7


def test_propensities_are_counted_on_instances() -> None:
    texts, Y, words = problem()
    vectorizer = lt.Tfidf(min_df=1).fit(texts + words)
    X, Z = vectorizer.transform(texts), vectorizer.transform(words)
    both, labels = append_rows(X, Y, *gandalf(Y, Z))
    expected = lt.JainPropensity().fit(Y).propensity_
    for make in (lt.OneVsAll, lt.XRLinear):
        plain = make(missing_labels=lt.JainPropensity()).fit(both, labels)
        told = make(missing_labels=lt.JainPropensity()).fit(both, labels, n_label_rows=L)
        np.testing.assert_array_equal(told.propensity_, expected)
        assert (plain.propensity_ != expected).any()
    kept = lt.OneVsAll().fit(both, labels, keep_rows=10**6, n_label_rows=L).kept_rows_
    assert kept is not None and kept.X.shape[0] == N


@pytest.mark.skipif(not HAS_TORCH, reason="needs torch")
def test_networks_validate_on_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    from longtail.deep import perceptron
    from longtail.deep.training.plan import Plan

    plan = Plan.of(lt.Network(validation=0.5), seed=0, n_label_rows=40)
    valid, rows = plan.split(100)
    assert len(valid) == 30 and valid.max() < 60
    assert sorted([*valid, *rows]) == list(range(100))
    before = Plan.of(lt.Network(validation=0.5), seed=0).split(100)
    assert np.array_equal(before[0], np.random.default_rng([0, 0]).permutation(100)[:50])

    seen: list[np.ndarray] = []
    make = perceptron.LabelValidation
    monkeypatch.setattr(perceptron, "LabelValidation", lambda *a: (seen.append(a[2]), make(*a))[1])
    texts, Y, words = problem()
    vectorizer = lt.Tfidf(min_df=1).fit(texts + words)
    X, Z = vectorizer.transform(texts), vectorizer.transform(words)
    both, labels = append_rows(X, Y, *gandalf(Y, Z))
    lt.Network(epochs=1, validation=0.9).fit(both, labels, n_label_rows=L)
    assert len(seen[0]) == int(0.9 * N) and seen[0].max() < N


@pytest.mark.skipif(not (HAS_TORCH and HAS_TOKENIZERS), reason="needs torch and tokenizers")
def test_text_networks_validate_on_instances(monkeypatch: pytest.MonkeyPatch) -> None:
    from longtail.text import training

    seen: list[Any] = []
    make = training.LabelValidation
    monkeypatch.setattr(training, "LabelValidation", lambda *a: (seen.append(a), make(*a))[1])
    texts, Y, words = problem()
    both, labels = append_rows(texts, Y, *gandalf(Y, words))
    how = {"epochs": 1, "device": "cpu", "n_jobs": 1, "validation": 0.9, "metric": "psp"}
    lt.TextNetwork(**how).fit(both, labels, n_label_rows=L)
    assert seen[0][2].max() < N
    np.testing.assert_array_equal(seen[0][4].propensity_, lt.JainPropensity().fit(Y).propensity_)


def test_how_many_rows_are_instances() -> None:
    assert n_instances(10, 3) == 7 and n_instances(3, 3) == 0
    for bad, error in ((4, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="n_label_rows"):
            n_instances(3, bad)
    with pytest.raises(ValueError, match="n_label_rows is 3, but there are 2 rows"):
        lt.OneVsAll(missing_labels=lt.JainPropensity()).fit(np.eye(2), [[0], [1]], n_label_rows=3)


def names_of(Y: sp.csr_matrix) -> list[list[str]]:
    return [[f"label {j}" for j in row] for row in np.split(Y.indices, Y.indptr[1:-1])]


def test_a_tagger_learns_what_occurs_together() -> None:
    texts, Y, words = problem()
    names = [f"label {j}" for j in range(L)]
    how = {"label_names": names, "label_texts": [*words[:7], "word1 unseen"]}
    taggers = {
        str(learn): lt.Tagger(model=lt.OneVsAll(), calibrate=False, learn_label_texts=learn).fit(
            texts, names_of(Y), **how
        )
        for learn in (False, True, "self", "co-occurrence", 0.1, 1.0, "symmetric", "random-walk")
    }
    answers = {learn: tagger.predict_topk(texts, 3) for learn, tagger in taggers.items()}
    assert answers["True"] == answers["self"] != answers["False"]
    assert answers["1.0"] == answers["self"] and answers["0.1"] == answers["co-occurrence"]
    assert answers["co-occurrence"] != answers["self"]
    assert answers["symmetric"] != answers["co-occurrence"]
    for learn, tagger in taggers.items():
        known = L - 1 if learn == "False" else L
        assert tagger.n_rows_ == N and len(tagger.label_names) == known
        counts = np.bincount(Y.indices, minlength=L)[:known]
        assert tagger.label_counts_.tolist() == counts.tolist()
    with pytest.raises(ValueError, match="learn_label_texts must be True, False, a number"):
        lt.Tagger(learn_label_texts="cooccurrence").fit(texts, names_of(Y), **how)


def test_a_tagger_counts_on_the_rows_it_learns_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy that is asked about held-out texts has not seen their labels, in no way."""
    from longtail.tagger import label_rows

    seen: list[int] = []

    def watched(Y: Any, *args: Any, **how: Any) -> Any:
        seen.append(Y.shape[0])
        return gandalf(Y, *args, **how)

    monkeypatch.setattr(label_rows, "gandalf", watched)
    fits: list[tuple[int, int]] = []
    fit = lt.OneVsAll.fit

    def counting(self: Any, X: Any, Y: Any, **how: Any) -> Any:
        fits.append((Y.shape[0], how.get("n_label_rows", 0)))
        return fit(self, X, Y, **how)

    counting.__signature__ = __import__("inspect").signature(fit)  # type: ignore[attr-defined]
    monkeypatch.setattr(lt.OneVsAll, "fit", counting)
    texts, Y, words = problem()
    lt.Tagger(model=lt.OneVsAll(), learn_label_texts="co-occurrence").fit(
        texts, Y, label_names=[f"label {j}" for j in range(L)], label_texts=words
    )
    n_labels = L - 1  # no text has the word of the last one, which is left out
    assert seen == [N, N - N // 10]
    assert fits == [(n + n_labels, n_labels) for n in seen]


def test_soft_labels_cost_less_in_inner_nodes_too() -> None:
    """A faint label does not make its node as positive as a plain one does."""
    label = np.arange(40) % 4
    X = np.eye(6, dtype=np.float32)[label]
    X[:, 4], X[:, 5] = label < 2, label >= 2  # labels 0 and 1 resemble each other, so do 2 and 3
    layers = []
    for value in (0.0, 0.25, 1.0):
        Y = np.eye(4, dtype=np.float32)[label]
        Y[2, 0] = value
        tree = lt.tree.LabelTree(level_sizes=[2])
        layers.append(lt.XRLinear(tree=tree).fit(X, Y).layers_[0].to_csr(6).toarray())
    without, faint, plain = layers
    change = np.abs(plain - without).max()
    assert 0 < np.abs(faint - without).max() < 0.6 * change
