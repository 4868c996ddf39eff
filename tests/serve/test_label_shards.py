"""A model cut by labels: servers of its shards, and one that asks them, answer as the whole."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serve_cases import Server, save_model, serving, wait_for

import longtail as lt
from longtail.linear.remote_shard import MODEL_HEADER, ShardLost, _pack_rows, unpack_rows
from longtail.linear.shards import label_shards
from longtail.tagger.sharding import connect, shard_tagger

rng = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(60)]
TEXTS = [" ".join(rng.choice(WORDS, 6)) for _ in range(400)]
LABELS = [[f"of {word}" for word in set(text.split()[:2])] for text in TEXTS]
ASKED = [" ".join(rng.choice(WORDS, 4)) for _ in range(30)]


@pytest.fixture(scope="module")
def taggers() -> dict[str, lt.Tagger]:
    tree = lt.tree.LabelTree(level_sizes=[4, 12])
    trees = [lt.XRLinear(tree=tree, beam=3, random_state=i) for i in range(2)]
    models = {"tree": trees[0], "ensemble": lt.Ensemble(models=trees)}
    return {name: lt.Tagger(model=model).fit(TEXTS, LABELS) for name, model in models.items()}


@pytest.fixture(scope="module", params=["tree", "ensemble"])
def cut(request: Any, taggers: Any, tmp_path_factory: Any) -> tuple[lt.Tagger, Path]:
    """The whole, and the folder of its three shards and their front."""
    folder, tagger = tmp_path_factory.mktemp("parts"), taggers[request.param]
    front, shards = shard_tagger(tagger, 3)
    front.save(folder / "front")
    for i, shard in enumerate(shards):
        shard.save(folder / f"shard-{i}")
    return tagger, folder


@pytest.fixture(scope="module")
def servers(cut: Any) -> Iterator[list[Server]]:
    folder = cut[1]
    with (
        serving(folder / "shard-0", "--token", "s3cret", "--workers", 2) as a,
        serving(folder / "shard-1", "--token", "s3cret") as b,
        serving(folder / "shard-2", "--token", "s3cret") as c,
    ):
        yield [a, b, c]


def test_ids_and_scores_are_those_of_the_whole(cut: Any, servers: list[Server]) -> None:
    whole, folder = cut
    front = lt.load(folder / "front")
    with pytest.raises(ValueError, match="3 shards"):
        front.predict(ASKED)
    connect(front, [server.address for server in servers], token="s3cret")
    for k in (1, 5, 40, 60):
        assert front.predict_topk(ASKED, k) == whole.predict_topk(ASKED, k)
    assert front.predict_topk(ASKED, 5, tail=0.7) == whole.predict_topk(ASKED, 5, tail=0.7)
    assert front.has_probabilities and front.predict([""]) == whole.predict([""])
    with pytest.raises(TypeError, match="does not support label filters"):
        front.predict(ASKED, include=[whole.label_names[0]])


def test_the_front_serves_what_the_whole_serves(cut: Any, servers: list[Server]) -> None:
    whole, folder = cut
    where = [part for server in servers for part in ("--shard", server.address)]
    with serving(folder / "front", *where, "--token", "s3cret") as front:
        headers = {"authorization": "Bearer s3cret"}
        status, _, body = front.ask("/predict", {"texts": ASKED, "k": 4}, headers)
        assert status == 200
        for found, expected in zip(body["results"], whole.predict(ASKED, k=4), strict=True):
            assert [item["label"] for item in found["labels"]] == [name for name, _ in expected]
            scores = [round(float(score), 6) for _, score in expected]
            assert [item["score"] for item in found["labels"]] == scores
        status, _, body = front.ask("/predict", {"texts": ["a"], "include": ["of word1"]}, headers)
        assert status == 422 and "filters" in body["detail"]
        assert front.ask("/labels?q=word1", headers=headers)[2]["total"] == len(whole.label_names)


def test_a_lost_shard_is_no_answer_until_it_is_back(cut: Any, servers: list[Server]) -> None:
    whole, folder = cut
    addresses = [server.address for server in servers]
    with serving(folder / "shard-2", "--token", "s3cret") as third:
        front = connect(lt.load(folder / "front"), [*addresses[:2], third.address], token="s3cret")
        assert front.predict(ASKED[:3]) == whole.predict(ASKED[:3])
        port = third.port
    with pytest.raises(ShardLost, match=f"{port} does not answer"):
        front.predict(ASKED[:3])
    with serving(folder / "shard-2", "--token", "s3cret", "--port", port):
        assert front.predict(ASKED[:3]) == whole.predict(ASKED[:3])


def test_what_does_not_belong_together(cut: Any, servers: list[Server], taggers: Any) -> None:
    _, folder = cut
    addresses = [server.address for server in servers]
    front = connect(lt.load(folder / "front"), addresses, token="wrong")
    with pytest.raises(ShardLost, match="401"):
        front.predict(ASKED[:1])
    other, _ = shard_tagger(taggers["tree"], 3)
    with pytest.raises(ShardLost, match="409"):
        connect(other, addresses, token="s3cret").predict(ASKED[:1])
    with pytest.raises(ValueError, match="has 3 shards, and 2 addresses"):
        connect(front, addresses[:2])
    with pytest.raises(ValueError, match="http://10"):
        connect(front, ["localhost:1", *addresses[1:]])
    with pytest.raises(ValueError, match="is whole"):
        connect(taggers["tree"], addresses)


def test_a_shard_refuses_what_is_no_question(cut: Any, servers: list[Server]) -> None:
    shard = lt.load(cut[1] / "shard-0")
    mark = getattr(shard, "shard_", None) or shard.members_[0].shard_
    status, _, body = servers[0].ask("/health")
    assert status == 200 and body["shard"]["number"] == 0 and body["shard"]["model"] == mark.model
    headers = {"authorization": "Bearer s3cret", MODEL_HEADER: mark.model}

    def ask(body: bytes) -> int:
        return servers[0].ask("/rank", body, headers)[0]

    X = lt.load(cut[1] / "front").transform(ASKED[:2])
    good = _pack_rows(X, 3, 0)
    raw, _, _ = unpack_rows(good, X.shape[1])
    assert (raw != X).nnz == 0
    assert ask(b"") == ask(good[:-1]) == ask(good[:8]) == 422
    assert ask(_pack_rows(X, 3, 9)) == ask(_pack_rows(X, 0, 0)) == ask(_pack_rows(X, -1, 0)) == 422
    X.indices[0] = 10**6
    assert ask(_pack_rows(X, 3, 0)) == 422
    many = np.frombuffer(good, "<i8").copy()
    many[0] = 2**62
    assert ask(many.tobytes()) == 422
    assert ask(_pack_rows(X[:0], 3, 0)) in (200, 422)


def test_serving_parts_the_wrong_way(cut: Any, tmp_path: Path, taggers: Any) -> None:
    with (
        pytest.raises(AssertionError, match="name their addresses with --shard"),
        serving(cut[1] / "front"),
    ):
        pass
    with (
        pytest.raises(AssertionError, match="is a shard itself"),
        serving(cut[1] / "shard-0", "--shard", "http://127.0.0.1:1"),
    ):
        pass
    with (
        pytest.raises(AssertionError, match="does not answer"),
        serving(cut[1] / "front", *["--shard", "http://127.0.0.1:1"] * 3),
    ):
        pass
    with (
        pytest.raises(AssertionError, match="no shards to connect"),
        serving(save_model(tmp_path / "whole"), "--shard", "http://127.0.0.1:1"),
    ):
        pass


def test_workers_take_over_a_new_model(taggers: Any, tmp_path: Path) -> None:
    """A shard is replaced as any model is; until the front is of the same model, it is refused."""
    tagger = taggers["tree"]
    front, (shard, *_) = shard_tagger(tagger, 2)
    shard.save(tmp_path / "m")
    with serving(tmp_path / "m", "--reload-seconds", 0.1) as server:
        _, (other, *_) = shard_tagger(tagger, 2)
        other.save(tmp_path / "m", overwrite=True)
        wait_for(lambda: server.ask("/health")[2]["shard"]["model"] == other.shard_.model)
        connect(front, [server.address] * 2)
        with pytest.raises(ShardLost, match=re.escape(other.shard_.model)):
            front.predict(ASKED[:1])


def test_one_vs_all_is_cut_between_blocks() -> None:
    data = lt.data.make_longtail(n=300, d=100, L=5000, n_test=50, random_state=0)
    model = lt.OneVsAll(max_iter=2).fit(data.train.X, data.train.Y)
    shards = label_shards(model, 2)
    assert [len(shard.label_of_leaf_) for shard in shards] == [4096, 904]
    ids = np.concatenate([shard.label_of_leaf_ for shard in shards])
    assert np.array_equal(np.sort(ids), np.arange(5000))
    with pytest.raises(ValueError, match="has 2 blocks of labels"):
        label_shards(model, 3)
    with pytest.raises(ValueError, match="this is a shard"):
        label_shards(shards[0], 1)
    for act in (
        lambda: shards[0].remove_labels([0]),
        lambda: shards[0].explain(data.test.X[:1], 0),
        lambda: shards[0].partial_fit(data.train.X, data.train.Y),
    ):
        with pytest.raises(ValueError, match="use the whole model"):
            act()


def test_models_that_cannot_be_cut(taggers: Any) -> None:
    fused = copy.copy(taggers["ensemble"])
    fused.model_ = copy.copy(fused.model_)
    fused.model_.rule = "learned"
    with pytest.raises(TypeError, match="whose rule is learned"):
        shard_tagger(fused, 2)
    tagger = lt.Tagger(model=lt.baselines.Popularity(), calibrate=False).fit(TEXTS, LABELS)
    with pytest.raises(TypeError, match="Popularity cannot be cut"):
        shard_tagger(tagger, 2)
