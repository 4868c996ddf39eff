"""Linear models under missing labels: corrections, weights per label in trees, graded labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from linear_cases import make_rows, weights_by_label
from scipy.optimize import minimize

import longtail as lt
from longtail import losses
from longtail.linear.train.missing_labels import CORRECTIONS

TIGHT: dict[str, Any] = {"C": 1.0, "tolerance": 1e-4, "max_iter": 20_000, "threshold": 0.0}
NEWTON: dict[str, Any] = {**TIGHT, "loss": "logistic", "tolerance": 1e-6, "max_iter": 500}
P = np.linspace(0.3, 1, 24)


def optimum(X: sp.csr_matrix, Y: Any, loss: Any, p: Any) -> np.ndarray:
    """``min_W 1/2 |W|^2 + sum_i loss(W x_i)`` with a loss of ``longtail.losses``, by L-BFGS."""
    rows = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr").astype(np.float64)
    shape = (Y.shape[1], rows.shape[1])

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(shape)
        value, gradient = loss(rows @ W.T, Y, p)
        return 0.5 * flat @ flat + value.sum(), (W + gradient.T @ rows).ravel()

    options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-9}
    start = np.zeros(shape[0] * shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(shape))


@pytest.mark.parametrize("base", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("correction", ["surrogate", "surrogate+balance", "balance+surrogate"])
def test_surrogates_minimise_the_loss_of_their_name(base: str, correction: str) -> None:
    X, Y = make_rows(n=80, n_labels=24)
    balance = {"surrogate": None, "surrogate+balance": "after", "balance+surrogate": "before"}
    counts = np.bincount(Y.indices, minlength=24)
    loss = losses.Surrogate(base, balance=balance[correction], counts=counts)
    settings = {**(TIGHT if base == "squared_hinge" else NEWTON), "loss": base}
    model = lt.OneVsAll(missing_labels=P, correction=correction, **settings).fit(X, Y)
    np.testing.assert_allclose(model.coef_.toarray(), optimum(X, Y, loss, P), atol=2e-3)
    np.testing.assert_array_equal(model.propensity_, P)


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize(
    ("correction", "loss"), [("unbiased", losses.OVA()), ("normalized", losses.OVAN())]
)
def test_corrections_by_target(correction: str, loss: Any, graded: bool) -> None:
    X, Y = make_rows(n=80, n_labels=24)
    if graded:
        Y = Y.multiply(np.linspace(0.25, 1, 80)[:, None]).tocsr().astype(np.float32)
    model = lt.OneVsAll(missing_labels=P, correction=correction, **NEWTON).fit(X, Y)
    expected = optimum(X, Y, loss, P)
    np.testing.assert_allclose(model.coef_.toarray(), expected, atol=2e-3)
    assert abs(expected - lt.OneVsAll(**NEWTON).fit(X, Y).coef_).max() > 0.1
    flat = lt.XRLinear(
        tree=lt.tree.LabelTree(leaf=100), missing_labels=P, correction=correction, **NEWTON
    ).fit(X, Y)
    np.testing.assert_allclose(weights_by_label(flat), expected, atol=2e-3)


def test_graded_labels_of_the_logistic_loss() -> None:
    """A value t is t positives and 1 - t negatives, each at its own cost."""
    X, Y = make_rows(n=80, n_labels=24)
    Y = Y.multiply(np.linspace(0.25, 1, 80)[:, None]).tocsr().astype(np.float32)
    model = lt.OneVsAll(missing_labels=P, **NEWTON).fit(X, Y)
    np.testing.assert_allclose(
        model.coef_.toarray(), optimum(X, Y, losses.Surrogate(), P), atol=2e-3
    )
    weighted = lt.OneVsAll(positive_weight=2 / P - 1, **NEWTON).fit(X, Y)
    np.testing.assert_array_equal(weighted.coef_.toarray(), model.coef_.toarray())


def test_graded_labels_of_hinges_cost_their_value() -> None:
    X, Y = make_rows()
    half = lt.OneVsAll(**TIGHT).fit(X, Y * 0.5).coef_.toarray()
    light = lt.OneVsAll(positive_weight=0.5, **TIGHT).fit(X, Y).coef_.toarray()
    np.testing.assert_array_equal(half, light)


@pytest.mark.parametrize("make", [lt.OneVsAll, lt.XRLinear])
@pytest.mark.parametrize("correction", CORRECTIONS[:1] + CORRECTIONS[3:4])
def test_complete_labels_change_nothing(make: Any, correction: str) -> None:
    X, Y = make_rows()
    plain = make(loss="logistic").fit(X, Y).predict_topk(X, k=24)
    model = make(loss="logistic", missing_labels=np.ones(24), correction=correction)
    assert model.fit(X, Y).predict_topk(X, k=24) == plain


TREE = lt.tree.LabelTree(kind="given", hierarchy=[[0, 1], [2, 3], [4, 5]])


def test_inner_nodes_weigh_rows_by_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[Any] = []
    from longtail.linear.train import parts

    train = parts.train_level

    def spy(X: Any, problem: Any, *args: Any, **kwargs: Any) -> Any:
        problems.append(problem)
        return train(X, problem, *args, **kwargs)

    monkeypatch.setattr(parts, "train_level", spy)
    Y = sp.csr_matrix([[1, 1, 0, 0, 0, 1], [0, 0, 1, 0, 0, 0]], dtype=np.float32)
    positive, negative = np.array([1.0, 3, 5, 7, 9, 11]), np.array([1.0, 2, 3, 4, 5, 6])
    model = lt.XRLinear(
        tree=TREE, positive_weight=positive, negative_weight=negative, C=2.0, n_jobs=1
    ).fit(np.eye(2), Y)
    inner, leaves = problems
    per_row = sp.csc_matrix(
        (inner.relevance, inner.positives.indices, inner.positives.indptr), shape=(2, 3)
    ).toarray()
    np.testing.assert_array_equal(per_row, [[2, 0, 11], [0, 5, 0]])
    np.testing.assert_array_equal(inner.positive_cost, [2, 2, 2])
    np.testing.assert_array_equal(inner.negative_cost, [3, 7, 11])
    np.testing.assert_array_equal(leaves.positive_cost, 2 * positive[model.label_of_leaf_])
    np.testing.assert_array_equal(leaves.negative_cost, 2 * negative[model.label_of_leaf_])
    assert leaves.relevance is None


def test_equal_weights_per_label_are_one_weight() -> None:
    X, Y = make_rows()
    tree = lt.tree.LabelTree(level_sizes=[3, 8])
    one = lt.XRLinear(tree=tree, positive_weight=3.0, negative_weight=0.5).fit(X, Y)
    each = lt.XRLinear(
        tree=tree, positive_weight=np.full(24, 3.0), negative_weight=np.full(24, 0.5)
    ).fit(X, Y)
    assert one.predict_topk(X, k=24) == each.predict_topk(X, k=24)


def test_a_tree_of_one_level_is_one_vs_all_under_correction() -> None:
    X, Y = make_rows()
    flat = lt.OneVsAll(missing_labels=P, **TIGHT).fit(X, Y)
    tree = lt.XRLinear(tree=lt.tree.LabelTree(leaf=100), missing_labels=P, **TIGHT).fit(X, Y)
    np.testing.assert_allclose(weights_by_label(tree), flat.coef_.toarray(), atol=2e-3)


def test_rare_labels_rise_in_trees() -> None:
    data = lt.data.make_longtail(n=1500, d=300, L=200, n_test=500, random_state=0)
    p = lt.JainPropensity().fit(data.train.Y)
    # Solved closely, so that where the solver stops does not decide.
    closely = {"tree": lt.tree.LabelTree(level_sizes=[8]), "tolerance": 1e-3, "max_iter": 2000}
    found = {}
    for name, missing in [("plain", None), ("corrected", p)]:
        top = lt.XRLinear(missing_labels=missing, **closely).fit(data.train.X, data.train.Y)
        top = top.predict_topk(data.test.X, k=5)
        found[name] = lt.metrics.ps_precision_at_k(data.test.Y, top, p, k=5)
    assert found["corrected"] > found["plain"]


@pytest.mark.parametrize("make", [lt.OneVsAll, lambda **q: lt.XRLinear(tree=TREE_8, **q)])
@pytest.mark.parametrize(
    "missing",
    [P, P.tolist(), lt.JainPropensity(a=0.6), "fitted", "inverse_", "propensity_"],
    ids=["array", "list", "unfitted", "fitted", "inverse", "propensity"],
)
def test_saving(make: Any, missing: Any, tmp_path: Any) -> None:
    X, Y = make_rows()
    if isinstance(missing, str):
        fitted = lt.propensity.FixedPropensity(source="survey").fit(propensity=P)
        own = {"inverse_": 1 / P, "propensity_": P}
        missing = fitted if missing == "fitted" else type("Own", (), {missing: own[missing]})()
    model = make(missing_labels=missing).fit(X, Y)
    model.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    np.testing.assert_array_equal(again.propensity_, model.propensity_)
    assert again.predict_topk(X) == model.predict_topk(X)
    assert again.fit(X, Y).predict_topk(X) == model.predict_topk(X)
    if isinstance(missing, lt.propensity.Propensity):
        assert repr(again.missing_labels) == repr(missing)
    plain = again.set_params(missing_labels=None).fit(X, Y)
    assert plain.propensity_ is None
    plain.save(tmp_path / "plain")
    assert lt.load(tmp_path / "plain").missing_labels is None


TREE_8 = lt.tree.LabelTree(level_sizes=[8])


def test_a_model_that_is_not_fitted_is_fitted_on_the_labels() -> None:
    X, Y = make_rows()
    jain = lt.JainPropensity()
    model = lt.OneVsAll(missing_labels=jain).fit(X, Y)
    np.testing.assert_array_equal(model.propensity_, lt.JainPropensity().fit(Y).propensity_)
    assert not jain.__sklearn_is_fitted__(), "parameters are left alone"


def test_a_checkpoint_knows_its_propensities(tmp_path: Any) -> None:
    X, Y = make_rows()
    lt.OneVsAll(missing_labels=P).fit(X, Y, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="another training"):
        lt.OneVsAll(missing_labels=P * 0.999).fit(X, Y, checkpoint=tmp_path / "c")
    for _ in range(2):  # other objects of the same values are the same training
        own = type("Own", (), {"inverse_": 1 / P})()
        lt.OneVsAll(missing_labels=own).fit(X, Y, checkpoint=tmp_path / "own")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"correction": "weights"}, "correction must be one of surrogate"),
        ({"correction": "pal"}, "compares all labels of a row: longtail.Network takes it"),
        ({"missing_labels": P, "correction": "unbiased"}, "not convex with loss='squared_hinge'"),
        ({"missing_labels": P, "correction": "normalized", "loss": "hinge"}, "loss='logistic'"),
        ({"missing_labels": P[:3]}, "one propensity for each of the 24 labels"),
        ({"missing_labels": P * 2}, r"probabilities in \(0, 1\]"),
        ({"missing_labels": lt.propensity.FixedPropensity()}, "not fitted yet"),
        (
            {
                "missing_labels": P,
                "correction": "unbiased",
                "loss": "logistic",
                "positive_weight": 0.1,
            },
            "raise positive_weight to negative_weight",
        ),
    ],
)
def test_refusals(params: dict[str, Any], message: str) -> None:
    X, Y = make_rows()
    with pytest.raises(ValueError, match=message):
        lt.OneVsAll(**params).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        lt.XRLinear(**params).fit(X, Y)


def test_targets_need_a_tree_of_one_level() -> None:
    X, Y = make_rows()
    model = lt.XRLinear(tree=TREE_8, missing_labels=P, correction="unbiased", loss="logistic")
    with pytest.raises(ValueError, match="needs a tree of one level"):
        model.fit(X, Y)
    with pytest.raises(TypeError, match="array of propensities or a propensity model"):
        lt.OneVsAll(missing_labels="jain").fit(X, Y)


@pytest.mark.parametrize("budget", [0.01, 0.5])
def test_pruning_by_budget_where_the_objective_is_negative(budget: float) -> None:
    X, Y = make_rows()
    settings = {**NEWTON, "missing_labels": np.full(24, 0.1), "correction": "unbiased"}
    whole = lt.OneVsAll(**settings).fit(X, Y)
    pruned = lt.OneVsAll(**{**settings, "threshold": 0.01, "prune_budget": budget}).fit(X, Y)
    rows = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    values = []
    for model in (whole, pruned):
        W = model.coef_.toarray().astype(np.float64)
        each = [losses.OVA()((rows @ W.T)[:, [j]], Y[:, [j]], [0.1]).value.sum() for j in range(24)]
        values.append(np.array(each) + 0.5 * (W**2).sum(axis=1))
    assert (values[0] < 0).any(), "the case tests negative objectives"
    assert (values[1] <= values[0] + 1.01 * budget * abs(values[0]) + 1e-3).all()
    assert pruned.coef_.nnz < whole.coef_.nnz


def test_labels_that_come_later() -> None:
    X, Y = make_rows()
    model = lt.OneVsAll(missing_labels=P, **TIGHT).fit(X, Y)
    before = model.coef_.toarray()
    again = model.partial_fit(X, Y, labels=[3, 7]).coef_.toarray()
    np.testing.assert_allclose(again, before, atol=2e-3)
    fewer = lt.OneVsAll(missing_labels=P[:20], **TIGHT).fit(X, Y[:, :20])
    fewer.add_labels(X, Y[:, 20:], Y_old=Y[:, :20])
    np.testing.assert_array_equal(fewer.propensity_, [*P[:20], 1, 1, 1, 1])
    complete = lt.OneVsAll(**TIGHT).fit(X, Y).coef_.toarray()
    np.testing.assert_allclose(fewer.coef_.toarray()[20:], complete[20:], atol=2e-3)
    heavy = lt.OneVsAll(missing_labels=P[:20], positive_weight=5.0, negative_weight=2.0, **TIGHT)
    heavy.fit(X, Y[:, :20]).add_labels(X, Y[:, 20:], Y_old=Y[:, :20])  # a number is for all labels
    assert heavy.positive_weight_[20:].tolist() == [5] * 4
    assert heavy.negative_weight_.tolist() == [2] * 24
    whole = lt.OneVsAll(positive_weight=5.0, negative_weight=2.0, **TIGHT).fit(X, Y)
    np.testing.assert_allclose(heavy.coef_.toarray()[20:], whole.coef_.toarray()[20:], atol=2e-3)
    fewer.remove_labels([0, 5])
    np.testing.assert_array_equal(fewer.propensity_, np.delete([*P[:20], 1, 1, 1, 1], [0, 5]))
    kept = fewer.coef_.toarray()
    fewer.partial_fit(X, sp.csr_matrix(np.delete(Y.toarray(), [0, 5], axis=1)), labels=[0, 1])
    np.testing.assert_allclose(fewer.coef_.toarray(), kept, atol=2e-3)


def test_weights_per_label_move_with_their_labels(tmp_path: Any) -> None:
    X, Y = make_rows()
    weights = np.linspace(0.5, 4, 24)
    model = lt.OneVsAll(positive_weight=weights, **TIGHT).fit(X, Y).remove_labels([0, 5])
    model.save(tmp_path / "m")
    left = sp.csr_matrix(np.delete(Y.toarray(), [0, 5], axis=1))
    for one in (model, lt.load(tmp_path / "m")):
        before = one.coef_.toarray()
        after = one.partial_fit(X, left, labels=[0, 6]).coef_.toarray()
        np.testing.assert_allclose(after, before, atol=2e-3)


def test_probabilities_under_correction() -> None:
    """The unbiased ones average to the rate of complete labels; weights bend them."""
    data = lt.data.make_longtail(n=4000, d=300, L=40, n_test=2000, random_state=1)
    p = np.linspace(0.3, 0.9, 40)
    Y = data.train.Y.copy()
    Y.data *= np.random.default_rng(0).random(Y.nnz) < p[Y.indices]
    Y.eliminate_zeros()
    settings = {"loss": "logistic", "post_processor": "sigmoid", "C": 10, "threshold": 0.0}
    mean = {}
    for name, params in [("ignored", {}), ("unbiased", {"missing_labels": p})]:
        model = lt.XRLinear(correction="unbiased", **params, **settings).fit(data.train.X, Y)
        mean[name] = model.predict_proba_topk(data.test.X, k=40).scores.mean()
    truth = data.test.Y.nnz / (2000 * 40)
    assert abs(mean["unbiased"] - truth) < 0.15 * truth < 0.3 * truth < truth - mean["ignored"]
    model = lt.XRLinear(missing_labels=p, **settings).fit(data.train.X, Y)
    with pytest.raises(AttributeError, match="the unbiased one"):
        model.predict_proba_topk(data.test.X, k=5)
    for weights in (
        {"positive_weight": 5.0},
        {"negative_weight": np.full(40, 0.2)},
        {"cost_weights": "normalized"},
    ):
        model = lt.XRLinear(**weights, **settings).fit(data.train.X, data.train.Y)
        with pytest.raises(AttributeError, match="equal weight"):
            model.predict_proba_topk(data.test.X, k=5)
    both = lt.XRLinear(positive_weight=0.5, negative_weight=0.5, **settings)
    assert both.fit(data.train.X, data.train.Y).predict_proba_topk(data.test.X, k=5).k == 5


def test_inner_nodes_of_new_labels_weigh_rows_too() -> None:
    """Weights that hardly differ give hardly another model, by the way of weights per row."""
    X, Y = make_rows(n=400, n_labels=40)
    weights = np.ones(30)
    weights[0] += 1e-6
    scores = []
    for positive in (1.0, weights):
        model = lt.XRLinear(
            tree=lt.tree.LabelTree(level_sizes=[3]), positive_weight=positive, beam=None, **TIGHT
        ).fit(X, Y[:, :30])
        model.add_labels(X, Y[:, 30:], Y_old=Y[:, :30], split_above=14)
        assert model.layers_[0].n_children > 3, "the case tests a split as well"
        top = model.predict_topk(X, k=40).to_csr().toarray()
        scores.append(top)
    np.testing.assert_allclose(scores[1], scores[0], atol=5e-3)
    heavy = lt.XRLinear(
        tree=lt.tree.LabelTree(level_sizes=[3]), positive_weight=np.full(30, 9.0), beam=None
    )
    heavy.fit(X, Y[:, :30]).add_labels(X, Y[:, 30:], Y_old=Y[:, :30])
    np.testing.assert_array_equal(heavy.positive_weight_, [9.0] * 30 + [1.0] * 10)
