"""Bodies that would cost gigabytes and minutes, on every endpoint that takes one."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serve_cases import SOURCE, call, save_model

import longtail as lt

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")

import pydantic

from longtail.linear.remote_shard import MODEL_HEADER
from longtail.serve import bodies, predicting, schemas, shard_app
from longtail.serve.app import create_app
from longtail.serve.bodies import AT_ONCE, TooComplex, check_json
from longtail.serve.settings import Settings
from longtail.tagger.sharding import shard_mark, shard_tagger

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "tagger"
SIZE = 8_000_000


def _hostile() -> Any:
    spec = importlib.util.spec_from_file_location("hostile", BENCHMARKS / "hostile_bodies.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, and a shard of another."""
    folder = tmp_path_factory.mktemp("bodies")
    save_model(folder / "model")
    texts = [f"word{i} word{i % 7}" for i in range(80)]
    model = lt.XRLinear(tree=lt.tree.LabelTree(level_sizes=[4, 12]))
    tagger = lt.Tagger(model=model).fit(texts, [text.split() for text in texts])
    shard_tagger(tagger, 2)[1][0].save(folder / "shard")
    return folder


@pytest.fixture(scope="module")
def apps(folder: Path) -> tuple[Any, Any]:
    return tuple(create_app(Settings(str(folder / name))) for name in ("model", "shard"))


def rank_headers(folder: Path) -> dict[str, str]:
    return {MODEL_HEADER: shard_mark(lt.load(folder / "shard")).model}


def ask(app: Any, path: str, body: bytes, **how: Any) -> tuple[int, dict[str, Any]]:
    status, _, chunks = asyncio.run(call(app, path, body, **how))
    answer = b"".join(chunks)
    return status, json.loads(answer) if answer.startswith(b"{") else {}


def test_errors_are_few(apps: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes some hundred bytes, and time on the event loop to be put into words."""
    counts: list[int] = []

    def invalid(errors: Any) -> Any:
        counts.append(len(errors))
        return refused(errors)

    refused = predicting.invalid
    monkeypatch.setattr(predicting, "invalid", invalid)
    statuses = set()
    for size in (1000, AT_ONCE - 1, 500_000):
        for name, (path, body) in _hostile().hostile_bodies(size).items():
            status, problem = ask(apps[0], path, body)
            assert status in (200, 400, 413, 422), name
            assert status == 200 or 0 < len(problem["detail"]) < 2000, name
            statuses.add(status)
        for name, body in _hostile().hostile_rows(size, 50).items():
            status, _ = ask(apps[1], "/rank", body, headers=rank_headers(folder))
            assert status in (200, 413, 422), name
    assert statuses == {200, 400, 413, 422}
    assert max(counts) <= bodies.MOST_FIELDS + 10


@pytest.mark.parametrize("name", ["texts", "include", "exclude"])
def test_the_first_wrong_value_of_a_list_ends_it(name: str) -> None:
    question = {"texts": ["a"], name: [1] * 5000}
    with pytest.raises(pydantic.ValidationError) as found:
        schemas.Question.model_validate_json(json.dumps(question))
    assert found.value.error_count() <= 2  # a text is neither a string nor an object


@pytest.mark.skipif(sys.platform == "win32", reason="reads the peak of memory as POSIX has it")
def test_memory_stays_bounded(folder: Path) -> None:
    """A list of four million wrong texts took gigabytes."""
    script = Path(__file__).with_name("peak_memory.py")
    path = os.pathsep.join([SOURCE, str(BENCHMARKS), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, script, folder, str(SIZE)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 300e6


def test_large_bodies_are_parsed_in_a_thread(
    apps: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []

    def watched(parse: Any) -> Any:
        def parsing(*args: Any, **options: Any) -> Any:
            threads.append(threading.current_thread() is not threading.main_thread())
            return parse(*args, **options)

        return parsing

    for kind in (schemas.Question, schemas.Why):
        monkeypatch.setattr(kind, "model_validate_json", watched(kind.model_validate_json))
    monkeypatch.setattr(predicting, "check_json", watched(predicting.check_json))
    monkeypatch.setattr(shard_app, "unpack_rows", watched(shard_app.unpack_rows))
    for size, off_the_loop in ((AT_ONCE // 2, False), (2 * AT_ONCE, True)):
        text = "paper " * (size // 6)
        for path, question in (
            ("/predict", {"text": text}),
            ("/explain", {"text": text[:90], "label": "printer" + " " * size}),
        ):
            threads.clear()
            assert ask(apps[0], path, json.dumps(question).encode())[0] in (200, 422)
            assert threads == [off_the_loop] * 2, path
        threads.clear()
        headers = rank_headers(folder)
        assert ask(apps[1], "/rank", b"\0" * size, headers=headers)[0] == 422
        assert threads == [off_the_loop]


def test_other_requests_are_answered_while_a_body_is_parsed(
    apps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow(body: bytes, longest: int) -> None:
        began.set()
        assert may_end.wait(20)

    monkeypatch.setattr(predicting, "check_json", slow)

    async def both() -> tuple[int, int]:
        body = json.dumps({"text": "paper " * AT_ONCE}).encode()
        large = asyncio.create_task(call(apps[0], "/predict", body))
        assert await asyncio.to_thread(began.wait, 20)
        health = (await call(apps[0], "/health"))[0]  # hangs where the loop is taken
        may_end.set()
        return health, (await large)[0]

    assert asyncio.run(both()) == (200, 200)


def sizes(value: Any) -> tuple[int, int, int]:
    """Longest list, largest object (a name that comes twice counts twice) and levels."""
    if isinstance(value, (list, Pairs)):
        inner = [sizes(one) for one in (value if isinstance(value, list) else value.values)]
        lists, objects, levels = (max([0, *(one[i] for one in inner)]) for i in range(3))
        if isinstance(value, list):
            return max(lists, len(value)), objects, levels + 1
        return lists, max(objects, len(value.values)), levels + 1
    return 0, 0, 0


class Pairs:
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.values = [value for _, value in pairs]


texts = st.text(st.sampled_from('a"\\[]{},:\n\u00e9'), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=7) | st.dictionaries(texts, inner, max_size=7),
    max_leaves=40,
)


@given(values, st.integers(1, 6), st.booleans(), st.integers(1, 5), st.integers(1, 4))
@settings(deadline=None)
def test_what_is_counted(value: Any, longest: int, ascii: bool, fields: int, levels: int) -> None:
    body = json.dumps(value, ensure_ascii=ascii).encode()
    lists, objects, depth = sizes(json.loads(body, object_pairs_hook=Pairs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "MOST_FIELDS", fields)
        patch.setattr(bodies, "MOST_LEVELS", levels)
        patch.setattr(bodies, "VALUES_PER_ITEM", 1000)
        if lists > longest or objects > fields or depth > levels:
            with pytest.raises(TooComplex):
                check_json(body, longest)
        else:
            check_json(body, longest)


def test_all_values_together_are_bounded() -> None:
    for unit in (b'["a","b"]', b'{"a":1}', b"[]", b'""', b"1"):
        few, many = (b"[%s]" % b",".join([unit] * n) for n in (50, 500))
        check_json(few, 400)
        with pytest.raises(TooComplex):
            check_json(many, 400)
    lists = b"[%s]" % b",".join([b"[%s]" % b",".join([b"1"] * 90)] * 90)
    check_json(lists, 405)
    with pytest.raises(TooComplex, match="values"):
        check_json(lists, 200)
    with pytest.raises(TooComplex, match="values"):
        check_json(b'"' * 10_000, 100)


def test_a_request_within_the_bounds_is_answered(apps: Any) -> None:
    many = {"texts": [{f"field{i}": "" for i in range(20)}] * 1000}
    status, problem = ask(apps[0], "/predict", json.dumps(many).encode())
    assert status == 422 and "fields" in problem["detail"]  # said by the model, not by the bounds
    names = {"text": "paper", "exclude": ["printer"] * 10_000}
    assert ask(apps[0], "/predict", json.dumps(names).encode())[0] == 200
