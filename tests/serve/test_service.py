"""The contract of the service."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from serve_cases import Server, save_model, serving, wait_for

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("service") / "tickets")


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    options = ("--max-batch", 50, "--max-body-mb", 0.05, "--reload-seconds", 0.2)
    with serving(model, *options) as running:
        yield running


def test_answers_in_order(server: Server) -> None:
    assert server.predict("paper jam", "wifi router", k=1) == [["printer"], ["network"]]
    status, _, body = server.ask("/predict", {"texts": ["paper"], "k": 2, "threshold": 0.5})
    assert status == 200 and [item["label"] for item in body["results"][0]["labels"]] == ["printer"]
    assert body["scores"] in ("probability", "score") and body["results"][0]["known_terms"] == 1
    _, _, body = server.ask("/predict", {"texts": ["zzz"]})
    assert body["results"][0]["known_terms"] == 0


def test_explanations_point_into_the_text(server: Server) -> None:
    text = "😀 My PAPER jam"
    _, _, body = server.ask("/predict", {"texts": [text], "k": 1, "explain": True})
    (label,) = body["results"][0]["labels"]
    spans = label["explanation"]["spans"]
    assert {text[start:end] for start, end, weight in spans if weight > 0} == {"PAPER", "jam"}
    assert label["explanation"]["terms"][0]["term"] in ("paper", "jam")


def test_many_clients_at_once_get_their_own_answers(server: Server) -> None:
    asked = ["paper jam", "password account", "wifi router"] * 20
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda text: server.predict(text, k=1)[0][0], asked))
    assert answers == ["printer", "login", "network"] * 20


def test_labels_are_found(server: Server) -> None:
    _, _, body = server.ask("/labels?q=PRINT")
    assert [item["label"] for item in body["labels"]] == ["printer"] and body["total"] == 3
    _, _, body = server.ask("/labels?limit=2")
    assert body["labels"][0] == {"label": "printer", "text": None, "training_texts": 16}
    assert len(body["labels"]) == 2


def test_facts(server: Server) -> None:
    assert server.ask("/health")[2] == {"status": "ok", "reload_error": None}
    assert server.ask("/version")[2]["longtail"]
    facts = server.ask("/model")[2]
    assert facts["name"] == "tickets" and facts["n_labels"] == 3 and facts["metrics"]["P@1"] == 1
    status, headers, page = server.ask("/report")
    assert status == 200 and "Tickets" in page and "style-src" in headers["content-security-policy"]
    assert set(server.ask("/openapi.json")[2]["paths"]) >= {"/predict", "/labels", "/metrics"}


def test_metrics_count(server: Server) -> None:
    def count() -> int:
        lines = server.ask("/metrics")[2].splitlines()
        (line,) = [line for line in lines if line.startswith("longtail_texts_total")]
        return int(line.split()[1])

    before = count()
    server.predict("paper", "jam", "tray")
    assert count() == before + 3
    text = server.ask("/metrics")[2]
    assert 'longtail_predict_seconds_bucket{le="+Inf"}' in text
    assert 'longtail_requests_total{path="/predict",status="2xx"}' in text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 20_000, 413),
        (b'{"texts": ' + b"[" * 8 + b"]" * 8 + b"}", 422),
        (b"\xff\xfe", 400),
        (b"null", 422),
        ({"texts": []}, 422),
        ({"texts": "paper"}, 422),
        ({"texts": [3]}, 422),
        ({"texts": ["paper"], "k": 0}, 422),
        ({"texts": ["paper"], "k": 10**30}, 422),
        ({"texts": ["paper"], "colour": "red"}, 422),
        ({"texts": ["paper"], "tail": 2}, 422),
        (b'{"texts": ["paper"], "threshold": NaN}', 422),
        ({"texts": ["paper"], "include": ["no such label"]}, 422),
        ({"texts": [{"title": "paper"}]}, 422),
        ({"texts": ["paper"] * 51}, 413),
        ({"texts": ["paper"] * 17, "explain": True}, 422),
        ({"texts": ["x" * 60_000]}, 413),
    ],
)
def test_what_makes_no_sense_is_refused(server: Server, body: object, status: int) -> None:
    found, headers, problem = server.ask("/predict", body, method="POST")
    assert found == status, problem
    assert headers["content-type"] == "application/problem+json"
    assert problem["status"] == status and problem["detail"][0] not in ":; "


def test_half_a_character_does_no_harm(server: Server) -> None:
    status, _, _ = server.ask("/predict", b'{"texts": ["\\ud800 paper"], "k": 1}')
    assert status == 400
    status, _, problem = server.ask("/predict", b'{"texts": ["a"], "\\ud800": 1}')
    assert status == 400 and problem["detail"]


def test_odd_requests_never_break_it(server: Server) -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "tagger" / "odd_requests.py"
    spec = importlib.util.spec_from_file_location("odd_requests", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    counts = module.send_odd_requests(server.port, 400, seed=1)
    assert not [status for status in counts if status.startswith("5")], counts
    assert counts["400"] > 50 and counts["422"] > 50 and counts["415"] > 10
    assert server.predict("paper", k=1) == [["printer"]]


def test_other_paths_and_methods(server: Server) -> None:
    assert server.ask("/nowhere")[0] == 404
    assert server.ask("/static/../app.py")[0] == 404
    assert server.ask("/predict", method="GET")[0] == 405
    assert server.ask("/labels?limit=0")[0] == 422


def test_a_body_without_a_length_is_counted_too(server: Server) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    parts = iter([b"x" * 30_000, b"x" * 30_000])
    headers = {"transfer-encoding": "chunked"}
    connection.request("POST", "/predict", parts, headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()
    assert server.predict("paper", k=1) == [["printer"]]


def test_a_new_model_takes_over_and_no_request_is_lost(server: Server, model: Path) -> None:
    statuses = []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        stop = False

        def keep_asking() -> None:
            while not stop:
                statuses.append(server.ask("/predict", {"texts": ["paper jam"]})[0])

        asking = [pool.submit(keep_asking) for _ in range(4)]
        save_model(model, extra="phone")
        wait_for(lambda: server.predict("phone talk", k=1) == [["phone"]])
        stop = True
        for task in asking:
            task.result()
    assert len(statuses) > 10 and set(statuses) == {200}


def test_a_corrupt_model_does_not_take_over(server: Server, model: Path) -> None:
    before = server.predict("paper jam")
    manifest = model / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[: len(whole) // 2])
    wait_for(lambda: server.ask("/health")[2]["reload_error"])
    assert server.predict("paper jam") == before
    save_model(model)
    wait_for(lambda: server.ask("/health")[2]["reload_error"] is None)
    assert json.loads(json.dumps(server.predict("wifi", k=1))) == [["network"]]


def test_the_page_says_over_which_labels_coverage_is(server: Server) -> None:
    """The number is that of ``coverage present``: labels in the test rows, and not all labels."""
    script = server.ask("/static/page.js")[2]
    assert "of all labels" not in script
    said = [line for line in script.splitlines() if "found at least once" in line]
    assert len(said) == 2 and all("the labels in the test rows are found" in line for line in said)
