"""Explanations are bounded, counted, done in small steps, and stop when nobody waits for them."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from serve_cases import call, save_model

import longtail as lt
from longtail.answers import AnswerOptions
from longtail.tagger import explanation, highlight

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")

from longtail.serve import batching
from longtail.serve.app import create_app
from longtail.serve.batching import Batcher, Busy
from longtail.serve.counters import Counters
from longtail.serve.explaining import MOST_CHARACTERS, MOST_PAIRS, too_much
from longtail.serve.settings import Settings


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("explaining") / "tickets")


@pytest.fixture(scope="module")
def tagger(model: Path) -> lt.Tagger:
    return lt.load(model)


class Endless:
    """Steps without an end, which counts those taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[None]:
        return self

    def __next__(self) -> None:
        self.taken += 1
        time.sleep(0.0005)


def test_one_walk_serves_all_labels(tagger: lt.Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    walks = []
    cut = highlight._cut
    monkeypatch.setattr(highlight, "_cut", lambda *a: walks.append(a) or cut(*a))
    text = "paper jam, no wifi and no password"
    found = tagger.explain(text, ["printer", "login", "network"])
    assert len(walks) == 1
    assert [why.label for why in found] == ["printer", "login", "network"]
    for why in found:
        assert why == tagger.explain(text, why.label)
        assert {text[a:b] for a, b, w in why.spans if w > 0}


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
@pytest.mark.parametrize("text", ["paper jam " * 5000, "paper" * 10_000])
def test_a_long_text_is_walked_in_many_steps(analyzer: str, text: str) -> None:
    """There is a pause for every thousand words or characters, in a word without an end too."""
    many = 1 if analyzer == "word" else 3
    vectorizer = lt.Tfidf(analyzer=analyzer, ngram_range=(many, many), min_df=1).fit([text])
    term = "paper"[:many] if many > 1 else text.split()[0]
    walk = highlight.Walk(vectorizer, text, {term})
    n = sum(1 for _ in walk.steps())
    assert n >= (len(text.split()) if analyzer == "word" else len(text)) // 1000
    assert walk.spans({term: 1.0})[0][0] == 0


def test_words_times_labels_are_bounded() -> None:
    assert too_much(["word"] * 16, 6) is None
    assert "16 texts" in (too_much(["word"] * 17, 1) or "")
    assert too_much(["a word " * MOST_PAIRS], 1) is None
    assert too_much(["word " * (MOST_PAIRS + 1)], 1)
    assert too_much(["word " * 1000], 10) is None
    assert too_much(["word " * 1000], 11)
    assert too_much([{"title": "word " * 500, "body": "word " * 501}], 10)
    assert too_much(["word"], 100) is None
    assert too_much(["word"], 101), "a label has a cost of its own"
    assert "characters" in (too_much([" " * (MOST_CHARACTERS + 1)], 1) or "")


def test_too_much_is_refused_before_any_work(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(Settings(str(model)))
    monkeypatch.setattr(Batcher, "ask", lambda *a: pytest.fail("it works"))
    body = {"texts": ["paper jam " * 7000], "k": 1000, "explain": True}
    status, _, chunks = asyncio.run(call(app, "/predict", body))
    assert status == 422 and b"words times labels" in chunks[0]
    body = {"text": "paper jam " * 20_000, "label": "printer"}
    assert asyncio.run(call(app, "/explain", body))[0] == 422


def test_one_label_is_explained(model: Path, tagger: lt.Tagger) -> None:
    app = create_app(Settings(str(model)))
    text = "no paper jam"
    status, _, chunks = asyncio.run(call(app, "/explain", {"text": text, "label": "printer"}))
    why = tagger.explain(text, "printer")
    assert status == 200
    found = json.loads(chunks[0])
    assert [[a, b] for a, b, _ in found["spans"]] == [[a, b] for a, b, _ in why.spans]
    assert found["method"] == why.method
    for body, message in [
        ({"text": text, "label": "no such"}, b"unknown label"),
        ({"text": text}, b"label"),
        ({"text": {"title": text}, "label": "printer"}, b"detail"),
    ]:
        status, _, chunks = asyncio.run(call(app, "/explain", body))
        assert status == 422 and message in chunks[0]
    status, _, chunks = asyncio.run(call(app, "/metrics"))
    assert b"longtail_explanations_total 1" in chunks[0]


def test_an_answer_does_not_wait_for_explanations(tagger: lt.Tagger) -> None:
    """Three explanations that never end, and an answer comes all the same."""

    async def check() -> None:
        batcher = Batcher(1000, Counters())
        steps = [Endless() for _ in range(3)]
        jobs = [asyncio.ensure_future(batcher.explain(iter(s), 10)) for s in steps]
        await asyncio.sleep(0.05)
        assert batcher.waiting == 30
        for _ in range(3):
            (answer,) = await batcher.ask(tagger, ["paper jam"], AnswerOptions(1))
            assert tagger.label_names[answer.ids[0]] == "printer"
        assert min(s.taken for s in steps) > 0, "each gets its turn"
        for job in jobs:
            job.cancel()
        await asyncio.sleep(0.1)
        taken = [s.taken for s in steps]
        await asyncio.sleep(0.05)
        assert [s.taken for s in steps] == taken and batcher.waiting == 0
        batcher.close()

    asyncio.run(check())


def test_explanations_count_as_waiting(tagger: lt.Tagger) -> None:
    async def check() -> None:
        counters = Counters()
        batcher = Batcher(12, counters)
        job = asyncio.ensure_future(batcher.explain(iter(Endless()), 10))
        await asyncio.sleep(0.02)
        with pytest.raises(Busy):
            await batcher.explain(iter(Endless()), 3)
        with pytest.raises(Busy):
            await batcher.ask(tagger, ["paper"] * 3, AnswerOptions(1))
        assert counters.total("refused") == 2
        job.cancel()
        await asyncio.sleep(0.05)
        batcher.close()

    asyncio.run(check())


def test_an_error_in_a_step_is_told(tagger: lt.Tagger) -> None:
    def failing() -> Iterator[Any]:
        yield None
        raise ValueError("no such thing")

    async def check() -> None:
        batcher = Batcher(10, Counters())
        with pytest.raises(ValueError, match="no such thing"):
            await batcher.explain(failing(), 1)
        assert batcher.waiting == 0
        (answer,) = await batcher.ask(tagger, ["paper jam"], AnswerOptions(1))
        assert answer.known_terms == 2
        batcher.close()

    asyncio.run(check())


@pytest.mark.parametrize("end", ["client", "deadline"])
@pytest.mark.parametrize("path", ["/explain", "/predict"])
def test_work_stops_when_nobody_waits(
    model: Path, monkeypatch: pytest.MonkeyPatch, end: str, path: str
) -> None:
    steps = Endless()
    monkeypatch.setattr(lt.Tagger, "explain_steps", lambda *a, **k: iter(steps))
    app = create_app(Settings(str(model), timeout=30.0 if end == "client" else 0.2))
    body: dict[str, Any] = {"text": "paper jam", "label": "printer"}
    if path == "/predict":
        body = {"texts": ["paper jam"], "k": 1, "explain": True}

    async def check() -> int:
        gone = asyncio.Event()
        if end == "client":
            asyncio.get_running_loop().call_later(0.1, gone.set)
        status, _, _ = await call(app, path, body, gone=gone)
        await asyncio.sleep(0.05)
        taken = steps.taken
        await asyncio.sleep(0.05)
        assert steps.taken == taken > 0
        return status

    assert asyncio.run(check()) == (0 if end == "client" else 503)
    assert threading.active_count() < 50


@pytest.mark.parametrize(("seconds", "sizes"), [(1.0, [1]), (0.0, [1, 2, 4, 8, 16, 32])])
def test_a_step_of_a_slow_model_is_one_row(
    monkeypatch: pytest.MonkeyPatch, seconds: float, sizes: list[int]
) -> None:
    """A model that cannot take its score apart is asked again and again, in steps that are as large
    as it is quick.
    """
    clock = itertools.count(step=seconds)
    monkeypatch.setattr(explanation.time, "perf_counter", lambda: next(clock))
    asked: list[int] = []

    def search(rows: Any, k: int) -> lt.TopK:
        asked.append(rows.shape[0])
        return lt.TopK(np.zeros((rows.shape[0], k), np.int32), np.ones((rows.shape[0], k)))

    x = sp.csr_matrix(np.ones((1, 200), np.float32))
    explanation.occlusion(search, x, [0], 1)
    assert sum(asked[1:]) == 200 and sorted(set(asked[1:-1])) == sizes


def test_a_short_request_to_a_slow_model_is_not_answered_on_the_spot(
    tagger: lt.Tagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop would stand still; once the model is quick again, it is."""
    where: list[bool] = []
    rank = lt.Tagger.rank

    def noted(*args: Any, **how: Any) -> Any:
        where.append(threading.current_thread() is threading.main_thread())
        return rank(*args, **how)

    monkeypatch.setattr(lt.Tagger, "rank", noted)
    monkeypatch.setattr(batching, "QUICK", 60.0)

    async def check() -> None:
        batcher = Batcher(100, Counters())
        for pace in (61.0, None, 61.0):
            await asyncio.sleep(0.01)  # at rest
            batcher._pace = batcher._pace if pace is None else pace
            await batcher.ask(tagger, ["paper jam"], AnswerOptions(1))
        batcher.close()

    asyncio.run(check())
    assert where == [False, True, False]


def test_a_large_answer_is_sent_in_chunks(model: Path) -> None:
    """Each is made in a few milliseconds; together they are the answer."""
    app = create_app(Settings(str(model)))
    body = {"texts": [f"paper jam {i}" for i in range(1000)], "k": 1000}
    status, headers, chunks = asyncio.run(call(app, "/predict", body))
    assert status == 200 and "content-length" not in headers
    assert len(chunks) > 1 and max(map(len, chunks)) < 80_000
    found = json.loads(b"".join(chunks))
    assert [r["labels"][0]["label"] for r in found["results"]] == ["printer"] * 1000
    status, headers, chunks = asyncio.run(call(app, "/predict", {"texts": ["paper"], "k": 2}))
    assert headers["content-length"] == str(len(chunks[0])) and len(chunks) == 1


def test_texts_with_many_labels_are_asked_in_smaller_batches(
    tagger: lt.Tagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    rank = lt.Tagger.rank

    def counted(self: lt.Tagger, X: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append(X.shape[0])
        return rank(self, X, *args, **kwargs)

    monkeypatch.setattr(lt.Tagger, "rank", counted)

    async def check() -> None:
        batcher = Batcher(4000, Counters())
        for k in (5, 1000):
            answers = await batcher.ask(tagger, ["paper jam"] * 100, AnswerOptions(k))
            assert len(answers) == 100
        batcher.close()

    asyncio.run(check())
    assert sizes[0] == 100 and max(sizes[1:]) <= 25 and sum(sizes) == 200


def test_the_page_asks_for_one_label_at_a_time() -> None:
    """``test_service_page.py`` looks at the marks in a browser, where there is one."""
    folder = Path(lt.__file__).parent / "serve" / "static"
    scripts = "".join(path.read_text() for path in sorted(folder.glob("*.js")))
    assert scripts.count('post("/explain"') == 1 and "explain: true" not in scripts
