"""The page in a real browser."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from serve_cases import WORDS, Server, save_model, serving

import longtail as lt

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


def test_a_wrong_token_says_so(browser: Browser, tmp_path: Path) -> None:
    with serving(save_model(tmp_path / "guarded"), "--token", "open sesame") as guarded:
        browser.run("sessionStorage.clear()")
        browser.open(guarded.address)
        browser.until("document.getElementById('token-dialog').open")
        assert browser.run("document.getElementById('token-wrong').hidden")
        browser.type("token", "open barley")
        browser.run("document.querySelector('#token-dialog button').click()")
        browser.until("!document.getElementById('token-wrong').hidden")
        browser.until("document.getElementById('token-dialog').open")
        browser.type("token", "open sesame")
        browser.run("document.querySelector('#token-dialog button').click()")
        browser.until("document.getElementById('name').textContent === 'guarded'")
        assert browser.run("document.getElementById('token-dialog').open") is False
        browser.run("sessionStorage.clear()")
        browser.complaints.clear()


TEXT = "document.getElementById('text').value"
STATUS = "document.getElementById('status').textContent"


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A model with label texts, fields and an example, under a title."""
    texts = [{"title": f"{w} {n}", "body": f"the {w}"} for n in WORDS for w in WORDS[n].split()]
    labels = [[name] for name in WORDS for _ in WORDS[name].split()]
    tagger = lt.Tagger(model="one-vs-all", field_weights={"title": 2.0, "body": 1.0})
    tagger.fit(texts * 3, labels * 3)
    words = {"printer": 'Paper, and "ink"', "login": "Accounts", "network": "Nets <b>"}
    tagger.label_texts_ = [words[name] for name in tagger.label_names]
    tagger.examples_ = [{"title": "wifi <i>down</i>", "body": "since noon " * 20}]
    folder = tmp_path_factory.mktemp("rich") / "model"
    tagger.save(folder)
    with serving(folder, "--title", "Help desk & <co>") as running:
        yield running


def test_first_view_examples_title_and_fields(browser: Browser, rich: Server) -> None:
    browser.open(rich.address)
    browser.until("!document.getElementById('examples').hidden")
    assert browser.run("document.getElementById('name').textContent") == "Help desk & <co>"
    about = browser.run("document.getElementById('about').textContent")
    assert "It knows 3 labels" in about and "how much each word speaks for" in about
    fields = "[...document.querySelectorAll('#inputs label')].map(e => e.textContent)"
    assert browser.run(fields) == ["title", "body"]
    browser.run("document.querySelector('#examples button').click()")
    browser.until(f"{LABELS}[0] === 'Nets <b>'")
    assert browser.run(TEXT) == "wifi <i>down</i>"
    assert browser.run("document.getElementById('text-1').value").startswith("since noon")
    browser.until(f"{MARKED}.includes('wifi')")
    assert browser.complaints == []


def test_a_found_label_says_what_it_is_and_why_not(browser: Browser, rich: Server) -> None:
    browser.open(rich.address)
    browser.until("document.querySelectorAll('#found details').length === 3")
    opened = "document.querySelector('#found details')"
    browser.type("query", "accounts")
    browser.until("document.querySelectorAll('#found details').length === 1")
    browser.run(f"{opened}.open = true")
    browser.until(f"{opened}.querySelector('button')")
    assert browser.run(f"{opened}.querySelector('button').disabled")  # there is no text yet
    assert "login, seen with 6 texts" in browser.run(f"{opened}.textContent")
    browser.type("text", "wifi")
    browser.run("document.getElementById('k').innerHTML = '<option>1</option>'")
    browser.run("document.getElementById('k').dispatchEvent(new Event('change'))")
    browser.until(f"{LABELS}.length === 1")
    browser.run(f"{opened}.open = false")
    browser.until(f"!{opened}.open")
    browser.run(f"{opened}.open = true")
    browser.until(f"!{opened}.querySelector('button').disabled")
    browser.run(f"{opened}.querySelector('button').click()")
    browser.until(f"{opened}.textContent.includes('the last answer shown has')")
    told = browser.run(f"{opened}.textContent")
    assert "It gets " in told and "No word of your text speaks for it" in told
    title = browser.run("document.getElementById('why-title').textContent")
    assert title == "Why not “Accounts”?"
    assert browser.complaints == []


def test_answers_can_be_taken_along(browser: Browser, rich: Server) -> None:
    browser.open(rich.address)
    browser.until("!document.getElementById('examples').hidden")
    browser.type("text", "paper")
    browser.until(f"{LABELS}.length === 3")
    # What is given to the browser as a file, and to its clipboard.
    browser.run(
        "URL.createObjectURL = (blob) => { blob.text().then((t) => { window.saved = t; });"
        "return 'about:blank#'; }; window.took = null;"
        "navigator.clipboard.writeText = async (t) => { window.took = t; };"
        "HTMLAnchorElement.prototype.click = function () { window.file = this.download; };"
    )
    browser.run("document.getElementById('download').click()")
    browser.until("window.saved")
    lines = browser.run("window.saved").splitlines()
    assert lines[0] == "rank,label,text,score" and browser.run("window.file") == "labels.csv"
    row = next(csv.reader([lines[1]]))
    assert row[:3] == ["1", "printer", 'Paper, and "ink"'] and 0 < float(row[3]) <= 1
    browser.run("document.getElementById('copy').click()")
    browser.until("window.took")
    assert browser.run("window.took").splitlines()[0] == 'printer\tPaper, and "ink"'


def test_an_order_that_is_not_by_probability_is_noted(browser: Browser, server: Server) -> None:
    browser.open(server.address)
    browser.type("text", "paper and password")
    browser.until(f"{LABELS}.length === 3")
    assert browser.run("document.getElementById('order').hidden")
    # Answers as a lean, or a rule, gives them: the later ones have the larger scores.
    browser.run(
        "const ask = window.fetch; window.fetch = async (path, options) => {"
        "const found = await ask(path, options); if (path !== '/predict') return found;"
        "const body = await found.json(); body.results[0].labels.reverse();"
        "return new Response(JSON.stringify(body)); };"
        "document.getElementById('k').dispatchEvent(new Event('change'))"
    )
    browser.until("!document.getElementById('order').hidden")
    assert "decision rule" in browser.run("document.getElementById('order').textContent")
    browser.run(
        "document.getElementById('tail').value = 1;"
        "document.getElementById('tail').dispatchEvent(new Event('input'))"
    )
    browser.until("document.getElementById('order').textContent.includes('brought forward')")


def test_a_busy_sign_while_an_answer_is_awaited(browser: Browser, server: Server) -> None:
    browser.open(server.address)
    browser.until("document.getElementById('name').textContent === 'tickets'")
    busy = "document.getElementById('answers').getAttribute('aria-busy')"
    browser.run(
        "const ask = window.fetch; window.fetch = (path, options) => path === '/predict'"
        "? new Promise((go) => { window.go = () => go(ask(path, options)); }) : ask(path, options)"
    )
    browser.type("text", "paper")
    browser.until("window.go")
    assert browser.run(busy) == "true"
    bar = "getComputedStyle(document.querySelector('#answers .bar')).animationName"
    assert browser.run(bar) == "wait"
    browser.run("window.go()")
    browser.until(f"{LABELS}.length > 0")
    browser.until(f"{busy} === 'false'")


def test_answers_come_first_on_a_phone(browser: Browser, rich: Server) -> None:
    browser.open(rich.address, width=390, height=844)
    browser.until("!document.getElementById('examples').hidden")
    browser.run("document.querySelector('#examples button').click()")
    browser.until("document.querySelectorAll('#marked mark').length > 0")
    tops = browser.run(
        "['ask', 'answers', 'why', 'lean', 'find', 'trust']"
        ".map(name => document.querySelector('.' + name).getBoundingClientRect().top)"
    )
    assert tops == sorted(tops)
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    small = browser.run(
        "[...document.querySelectorAll('button, summary, select, input')]"
        ".filter(e => e.offsetHeight && e.offsetHeight < 28).map(e => e.id || e.textContent)"
    )
    assert small == []


def test_light_and_dark_are_readable(browser: Browser, rich: Server) -> None:
    """Text against its ground has a contrast of at least 4.5, in both schemes."""
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.call("Emulation.setEmulatedMedia", features=[feature])
        browser.open(rich.address)
        browser.until("!document.getElementById('examples').hidden")
        browser.run("document.querySelector('#examples button').click()")
        browser.until(f"{LABELS}.length > 0")
        colours = browser.run(
            "['h1', '#about', '#status', '.label-name', '.label-text', '.examples button', 'a']"
            ".map(q => { const e = document.querySelector(q); let g = e;"
            "const ground = (x) => getComputedStyle(x).backgroundColor;"
            "while (ground(g) === 'rgba(0, 0, 0, 0)') g = g.parentElement;"
            "return [getComputedStyle(e).color, ground(g)]; })"
        )
        assert all(contrast(*pair) >= 4.5 for pair in colours), colours
    browser.call("Emulation.setEmulatedMedia", features=[])


def contrast(first: str, second: str) -> float:
    """WCAG 2.1, of two colours as a browser writes them."""
    lights = []
    for colour in (first, second):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_the_interface_is_a_page_without_outside_scripts(browser: Browser, rich: Server) -> None:
    browser.open(rich.address)  # waits for the page; then on to another
    browser.complaints.clear()
    browser.call("Page.navigate", url=f"{rich.address}/docs")
    browser.until("document.title.includes('the interface')")
    assert browser.run("document.scripts.length") == 0
    assert browser.run("performance.getEntriesByType('resource').length") == 0
    assert "POST /predict" in browser.run("document.body.innerText")
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=390,
        height=844,
        deviceScaleFactor=1,
        mobile=True,
    )
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.complaints == []
