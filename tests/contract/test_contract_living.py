"""What models may offer beside the contract, for every one that offers it."""

from __future__ import annotations

import copy
import inspect
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from contract_cases import CASES, Case, Problem, as_texts, features, make_problem

import longtail as lt
from longtail import TopK
from longtail.exceptions import ModelFormatError

Make = Callable[..., Any]
GROWING = Case(
    "Ensemble(linear)",
    lambda **p: lt.Ensemble(
        models=[lt.OneVsAll(), lt.XRLinear(tree=lt.tree.LabelTree(leaf=4, branching=2))], **p
    ),
)


@pytest.fixture(params=[*CASES, GROWING], ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def offered(model: Any, name: str) -> Any:
    if not hasattr(model, name):
        pytest.skip(f"{type(model).__name__} has no {name}")
    return getattr(model, name)


def takes(make: Make, name: str) -> None:
    if name not in inspect.signature(make().fit).parameters:
        pytest.skip(f"fit takes no {name}")


def grown(model: Any, problem: Problem, **how: Any) -> Any:
    """The model with the labels from number 9 on added to its nine."""
    new = problem.Y[:, 9:].tocsr()
    return model.add_labels(problem.X, new, Y_old=problem.Y[:, :9], **how)


def exact(model: Any) -> dict[str, Any]:
    return {"beam": None} if isinstance(model, lt.XRLinear) else {}


def saved_and_loaded(model: Any, X: Any, folder: Path) -> Any:
    """Checks that a model survives the disk, with the same answers."""
    model.save(folder)
    found = lt.load(folder, verify=True)
    assert found.predict_topk(X, k=20) == model.predict_topk(X, k=20)
    return found


def test_new_labels(make: Make, problem: Problem, tmp_path: Path) -> None:
    model = make().fit(problem.X, problem.Y[:, :9])
    offered(model, "add_labels")
    assert grown(model, problem) is model
    assert model.n_labels_ == 12
    top = model.predict_topk(problem.X, k=12)
    TopK(top.indices, top.scores, 12)
    if isinstance(model, lt.baselines.NearestNeighbors):  # answers what a neighbour has
        assert set(range(9, 12)) <= set(top.indices.ravel().tolist())
    else:
        assert (np.sort(top.indices, axis=1) == np.arange(12)).all()
    only = model.predict_topk(problem.X, k=2, include=[9, 11])
    assert (np.sort(only.indices, axis=1) == [9, 11]).all()
    # MACH trains the difference in a step of its own, and so do models that read label texts.
    if not isinstance(model, (lt.MACH, lt.DualEncoder)):
        hits = [problem.Y[i, label] for i, label in enumerate(top.indices[:, 0])]
        assert np.mean(hits) > 0.9
    saved_and_loaded(model, problem.X, tmp_path / "m")
    assert model.fit(problem.X, problem.Y).n_labels_ == 12


def test_new_labels_and_names(make: Make, problem: Problem) -> None:
    """All labels have names afterwards, or none."""
    names = [f"label {i}" for i in range(12)]
    model = make().fit(problem.X, problem.Y[:, :9]).name_labels(names[:9])
    offered(model, "add_labels")
    with pytest.raises(ValueError, match="names"):
        grown(model, problem)
    assert model.n_labels_ == 9
    grown(model, problem, names=names[9:])
    assert list(model.label_names_) == names
    assert (model.predict_topk(problem.X, k=1, include=["label 10"]).indices == 10).all()


def test_removed_labels(make: Make, problem: Problem, tmp_path: Path) -> None:
    names = [f"label {i}" for i in range(12)]
    model = make().fit(problem.X, problem.Y).name_labels(names)
    offered(model, "remove_labels")
    left = [i for i in range(12) if i not in (0, 7)]
    if not isinstance(model, lt.Ensemble):  # whose scores depend on the other candidates
        expected = model.predict_topk(problem.X, k=12, include=left, **exact(model))
    assert model.remove_labels([7, 0]) is model
    assert model.n_labels_ == 10 and list(model.label_names_) == [names[i] for i in left]
    whole = {"include": range(10)}  # all that are left, also those that no neighbour has
    top = model.predict_topk(problem.X, k=12, **whole, **exact(model))
    assert (np.sort(top.indices[:, :10], axis=1) == np.arange(10)).all()
    if not isinstance(model, lt.Ensemble):
        assert np.array_equal(np.asarray(left)[top.indices[:, :10]], expected.indices[:, :10])
        assert np.array_equal(top.scores, expected.scores)
    saved_and_loaded(model, problem.X, tmp_path / "m")
    for wrong in ([10], [-1], range(10)):
        with pytest.raises(ValueError):
            model.remove_labels(wrong)
    assert model.n_labels_ == 10


def test_labels_trained_anew(make: Make, problem: Problem, tmp_path: Path) -> None:
    """Those named change, all others keep their scores."""
    model = make().fit(problem.X, problem.Y)
    offered(model, "partial_fit")
    others = [i for i in range(12) if i not in (2, 5)]
    before = model.predict_topk(problem.X, k=12, include=others, **exact(model))
    own = model.predict_topk(problem.X, k=2, include=[2, 5], **exact(model))
    changed = problem.Y.toarray()
    changed[:, [2, 5]] = changed[:, [5, 2]]
    assert model.partial_fit(problem.X, changed, labels=[2, 5]) is model
    assert model.predict_topk(problem.X, k=12, include=others, **exact(model)) == before
    swapped = model.predict_topk(problem.X, k=2, include=[2, 5], **exact(model))
    assert (swapped.indices != own.indices).mean() > 0.3
    saved_and_loaded(model, problem.X, tmp_path / "m")
    assert model.partial_fit(problem.X, changed, labels=[]) is model


def test_explanations_sum_to_the_score(make: Make, problem: Problem) -> None:
    model = make().fit(problem.X, problem.Y)
    offered(model, "explain")
    for row, label in ((0, 0), (3, 11), (40, 5)):
        why = model.explain(problem.X[row], label)
        top = model.predict_topk(problem.X[row], k=1, include=[label])
        assert why.score == pytest.approx(top.scores[0, 0], rel=1e-4, abs=1e-5)
        assert why.baseline + why.shares.sum() == pytest.approx(why.path_score, abs=1e-9)
        assert str(why)
    with pytest.raises((ValueError, IndexError)):
        model.explain(problem.X[0], 12)


def test_profiles_name_features_and_neighbours(make: Make, problem: Problem) -> None:
    model = make().fit(problem.X, problem.Y)
    offered(model, "label_profile")
    for label in (0, 11):
        profile = model.label_profile(label)
        best = [weight for _, weight in profile.strongest(3)]
        assert best == sorted(best, reverse=True) and best[0] > 0
        assert label not in [name for name, _ in profile.neighbours()]
        assert str(profile)


def test_compact_or_a_clear_refusal(make: Make, problem: Problem, tmp_path: Path) -> None:
    model = make().fit(problem.X, problem.Y)
    if not hasattr(model, "layers_"):
        with pytest.raises(TypeError, match="linear model"):
            lt.linear.compact(model)
        return
    before = model.predict_topk(problem.X)
    for precision in ("bf16", "int8"):
        small = lt.linear.compact(model, precision=precision, X=problem.X, Y=problem.Y)
        assert small.nbytes < model.nbytes
        np.testing.assert_allclose(small.predict_topk(problem.X).scores, before.scores, atol=0.1)
        loaded = saved_and_loaded(small, problem.X, tmp_path / precision)
        assert loaded.compaction_ == small.compaction_
        assert set(loaded.compaction_["precision_at"]) == {"before", "after"}
    assert model.predict_topk(problem.X) == before


def test_weights_of_rows(make: Make, problem: Problem) -> None:
    takes(make, "sample_weight")
    n = problem.X.shape[0]
    plain = make().fit(problem.X, problem.Y).predict_topk(problem.X, k=12)
    ones = make().fit(problem.X, problem.Y, sample_weight=np.ones(n))
    assert ones.predict_topk(problem.X, k=12) == plain
    # A row that says the contrary of another: the heavier one is believed.
    X = sp.vstack([problem.X, problem.X[:1]]).tocsr()
    contrary = 1 - problem.Y[0].toarray()
    Y = np.vstack([problem.Y.toarray(), contrary])
    for heavy, truth in ((0, Y[0]), (n, Y[n])):
        weight = np.ones(n + 1)
        weight[heavy] = 100.0
        top = make().fit(X, Y, sample_weight=weight).predict_topk(X[:1], k=1)
        assert truth[top.indices[0, 0]] == 1
    for wrong in (np.ones(n - 1), -np.ones(n), np.full(n, np.nan), np.ones((n, 2))):
        with pytest.raises(ValueError, match="weight"):
            make().fit(problem.X, problem.Y, sample_weight=wrong)


def test_training_goes_on_from_a_checkpoint(make: Make, problem: Problem, tmp_path: Path) -> None:
    """The same bits with a folder, from parts of it, and from all of it; none for other data."""
    if "checkpoint" not in inspect.signature(make().fit).parameters:
        pytest.skip("has no checkpoints")
    folder = tmp_path / "c"

    def fit(Y: Any) -> Any:
        return make().fit(problem.X, Y, checkpoint=folder)

    expected = make().fit(problem.X, problem.Y).predict_topk(problem.X, k=12)
    assert fit(problem.Y).predict_topk(problem.X, k=12) == expected
    if not folder.exists():
        pytest.skip("this estimator keeps nothing")
    assert fit(problem.Y).predict_topk(problem.X, k=12) == expected
    with pytest.raises(ValueError, match="other data"):
        fit(problem.Y[:, ::-1])


def test_a_model_that_changed_is_not_a_changed_copy(make: Make, problem: Problem) -> None:
    """What a shallow copy shares with its original, it does not change."""
    model = make().fit(problem.X, problem.Y[:, :9])
    offered(model, "add_labels")
    before = model.predict_topk(problem.X, k=9)
    grown(copy.copy(model), problem)
    assert model.n_labels_ == 9 and model.predict_topk(problem.X, k=9) == before


def test_many_threads_ask_one_loaded_model(make: Make, problem: Problem, tmp_path: Path) -> None:
    model = make().fit(problem.X, problem.Y)
    model.save(tmp_path / "m")
    expected = [model.predict_topk(problem.X[i:], k=3 + i % 3) for i in range(6)]
    loaded = lt.load(tmp_path / "m")
    wrong: list[Any] = []

    def ask(i: int) -> None:
        try:
            for _ in range(4):
                if loaded.predict_topk(problem.X[i:], k=3 + i % 3) != expected[i]:
                    wrong.append(i)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@features
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_forked_workers_answer_alike(tmp_path: Path) -> None:
    """Every model in one process: loaded, asked, forked, and asked again."""
    problem = make_problem()
    texts = as_texts(problem.X)
    for i, case in enumerate([*CASES, GROWING]):
        rows = texts if case.texts else problem.X
        case.make().fit(rows, problem.Y).save(tmp_path / f"{i} {case.name}")
    sp.save_npz(tmp_path / "X.npz", problem.X)
    (tmp_path / "texts.json").write_text(json.dumps(list(texts)))
    script = Path(__file__).with_name("forked.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(CASES) + 1, done.stdout + done.stderr


def test_damaged_names_are_refused(make: Make, problem: Problem, tmp_path: Path) -> None:
    """A model that has grown is checked like any other: one label name too few is no model."""
    model = make().fit(problem.X, problem.Y).name_labels([f"label {i}" for i in range(12)])
    state = model._get_state()
    state.meta["n_labels"] = 13
    lt.persist.save(tmp_path / "m", state)
    with pytest.raises(ModelFormatError):
        lt.load(tmp_path / "m")
