"""The page in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from serve_cases import Server, save_model, serving

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

LABELS = "[...document.querySelectorAll('#labels .label-name')].map(e => e.firstChild.textContent)"
MARKED = "[...document.querySelectorAll('#marked mark:not(.against)')].map(e => e.textContent)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    model = save_model(tmp_path_factory.mktemp("page") / "tickets")
    with serving(model) as running:
        yield running


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


def test_typing_shows_labels_and_the_words_that_spoke(browser: Browser, server: Server) -> None:
    browser.open(server.address)
    browser.until("document.getElementById('name').textContent === 'tickets'")
    browser.type("text", "😀 my PAPER jam & <b>router</b>")
    browser.until(f"{LABELS}[0] === 'printer'")
    browser.until(f"{MARKED}.join() === 'PAPER,jam'")
    # Choosing another label marks other words.
    index = browser.run(f"{LABELS}.indexOf('network')")
    browser.run(f"document.querySelectorAll('#labels button')[{index}].click()")
    browser.until(f"{MARKED}.join() === 'router'")
    assert browser.run("document.querySelectorAll('[aria-pressed=true]').length") == 1
    assert "network" in browser.run("document.getElementById('legend').textContent")
    assert browser.complaints == []


def test_slider_search_and_report(browser: Browser, server: Server) -> None:
    browser.open(server.address)
    browser.type("text", "paper and password")
    browser.until(f"{LABELS}.length === 3")
    before = browser.run(LABELS)
    browser.run(
        "(() => { const s = document.getElementById('tail'); s.value = 1;"
        "s.dispatchEvent(new Event('input')); })()"
    )
    browser.until("document.getElementById('tail-value').textContent.includes('1.00')")
    assert sorted(browser.run(LABELS)) == sorted(before)
    cost = browser.run("document.getElementById('tail-cost').textContent")
    assert cost.startswith("Measured: ")
    assert "100.0 % of the labels in the test rows are found at least once" in cost
    tiles = browser.run("document.getElementById('metrics').textContent")
    assert "of the labels in the test rows are found at least once" in tiles
    browser.type("query", "net")
    browser.until("document.querySelectorAll('#found li').length === 1")
    assert "network" in browser.run("document.getElementById('found').textContent")
    assert "100.0 %" in browser.run("document.getElementById('metrics').textContent")
    browser.run("document.querySelector('#report summary').click()")
    browser.until("document.getElementById('report-frame').srcdoc.includes('Tickets')")
    assert browser.complaints == []


def test_clearing_the_text_clears_the_answers(browser: Browser, server: Server) -> None:
    browser.open(server.address)
    browser.type("text", "paper")
    browser.until(f"{LABELS}.length > 0")
    browser.run("document.getElementById('text').select()")
    browser.call("Input.insertText", text="")
    browser.until(f"{LABELS}.length === 0 && document.getElementById('marked').hidden")


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_nothing_runs_off_the_side(browser: Browser, server: Server, width: int) -> None:
    browser.open(server.address, width=width)
    browser.type("text", "paper jam " + "averyveryverylongwordwithoutanyspace" * 10)
    browser.until(f"{LABELS}.length > 0")
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")


def test_controls_have_names_and_sizes(browser: Browser, server: Server) -> None:
    browser.open(server.address, width=390)
    browser.type("text", "paper jam")
    browser.until(f"{LABELS}.length > 0")
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    controls = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in tree
        if node.get("role", {}).get("value")
        in ("textbox", "searchbox", "slider", "button", "combobox")
    ]
    assert {role for role, _ in controls} >= {"textbox", "searchbox", "slider", "button"}
    assert all(name for _, name in controls), controls
    heights = browser.run(
        "[...document.querySelectorAll('#labels button')].map(e => e.offsetHeight)"
    )
    assert min(heights) >= 44  # a thumb


def test_a_token_is_asked_for_once(browser: Browser, tmp_path: Path) -> None:
    with serving(save_model(tmp_path / "guarded"), "--token", "open sesame") as guarded:
        browser.complaints.clear()
        browser.open(guarded.address)
        browser.until("document.getElementById('token-dialog').open")
        browser.type("token", "open sesame")
        browser.run("document.querySelector('#token-dialog button').click()")
        browser.until("document.getElementById('name').textContent === 'guarded'")
        browser.type("text", "paper jam")
        browser.until(f"{LABELS}[0] === 'printer'")
        assert browser.run("document.getElementById('token-dialog').open") is False
