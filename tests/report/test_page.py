"""The page: well-formed, self-contained, safe with hostile names, and true to the numbers."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.report.charts import Series, bar_chart, line_chart
from longtail.report.formatting import align, count_range, per_cent, printable
from longtail.report.templates import document

VOID = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a & b < c",
    "\x1b[31mred\x00",
    "\u202eright to left",
    "\ud800 lone surrogate",
    "x" * 500,
    "</title></style><style>*{display:none}",
]


class Checker(HTMLParser):
    """Collects tags and refuses markup that is not properly nested."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.texts = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *a) for a in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *a) for a in attrs]

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.texts.append(data)


def parse(html):
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert not checker.open
    return checker


def report(**options):
    rng = np.random.default_rng(0)
    truth = sp.csr_matrix((rng.random((150, len(HOSTILE))) < 0.3).astype(float))
    scores = rng.random(truth.shape)
    train = (rng.random((300, len(HOSTILE))) < np.linspace(0.6, 0.01, len(HOSTILE))).astype(float)
    p = lt.JainPropensity().fit(train)
    return lt.evaluate(
        truth, scores, **{"propensity": p, "train_Y": train, "n_resamples": 30, **options}
    )


@pytest.mark.parametrize("options", [{}, {"k": 2}, {"n_resamples": 0}, {"propensity": None}])
def test_is_well_formed_and_self_contained(options):
    html = report(**options).to_html()
    found = parse(html)
    assert html.startswith("<!DOCTYPE html>") and '<html lang="en">' in html
    assert not re.search(r"https?://|//[a-z]|url\(|@import|src=|<link|javascript:", html)
    assert found.tags.count("script") == 1  # the one that sorts
    assert {"h1", "table", "svg", "style", "title", "main"} <= set(found.tags)
    assert found.tags.count("svg") >= 4
    assert not [a for a in found.attributes if a[1].startswith("on") or a[1] == "href"]


def test_hostile_names_stay_text():
    made = report(label_names=HOSTILE, title=HOSTILE[0])
    html = made.to_html()
    found = parse(html)
    assert found.tags.count("script") == 1 and "img" not in found.tags
    assert found.tags.count("style") == 1
    assert "<script>alert(1)</script>" in "".join(found.texts)  # shown, not run
    assert not set("\x1b\x00\u202e\ud800") & set(html)
    assert not set("\x1b\x00\u202e\ud800") & set(str(made))
    html.encode("utf-8")


def test_numbers_are_those_of_the_report():
    made = report()
    text = " ".join(parse(made.to_html()).texts)
    for name in ("P@1", "nDCG@5", "PSP@5", "macro-F1@5", "coverage@5"):
        assert per_cent(made[name]) in text
    assert "JainPropensity(a=0.55, b=1.5, n_rows=300)" in text
    assert all(note.text in text for note in made.warnings)
    assert "95% bootstrap intervals" in text


def test_is_written_to_a_file(tmp_path):
    made = report(label_names=HOSTILE)
    html = made.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == html


def test_a_body_made_elsewhere_gets_a_whole_page():
    html = document(HOSTILE[0], "<main><p>inside</p></main>", "p { color: red }")
    found = parse(html)
    assert html.startswith("<!DOCTYPE html>") and "script" not in found.tags
    assert "<main><p>inside</p></main>" in html and "p { color: red }</style>" in html


def test_notebooks_get_a_fragment():
    fragment = report()._repr_html_()
    found = parse(fragment)
    assert fragment.startswith('<div class="lt-report">') and "html" not in found.tags
    css = fragment.partition("<style>")[2].partition("</style>")[0]
    rules = [r for r in re.findall(r"([^{}]+)\{", css) if not r.strip().startswith("@")]
    assert all(".lt-report" in part for rule in rules for part in rule.split(","))


def test_everything_drawn_is_named_for_screen_readers():
    html = report().to_html()
    for tag in re.findall(r'<svg class="chart"[^>]*>', html):
        assert 'role="img"' in tag and 'aria-label="' in tag
    assert html.count("<title>") > 20
    assert html.count('scope="row"') > 15


SERIES = [
    [[0.0, 0.0, 0.0]],
    [[1.0, 0.5, 0.25], [0.0, 1e-9, 0.9999]],
    [[3.2, 2.8, 2.5]],
    [[1e-5, 2e-5, 1e-6]],
]


@pytest.mark.parametrize("values", SERIES)
def test_charts_stay_inside_their_frame(values):
    series = [
        Series(f"<s{i}>", v, [x * 0.9 for x in v], [x * 1.1 for x in v])
        for i, v in enumerate(values)
    ]
    drawings = (
        line_chart("a <title>", ["@1", "@3", "@5"], series),
        bar_chart("b & c", ["head", "2", "tail"], ["1", "2", "3"], series),
    )
    for drawing in drawings:
        svg = ET.fromstring(drawing.partition("</svg>")[0] + "</svg>")
        numbers = [
            (attribute, float(value))
            for element in svg.iter()
            for attribute, value in element.attrib.items()
            if attribute in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height")
        ]
        assert numbers and all(np.isfinite(v) and -1 <= v <= 361 for _, v in numbers)


def test_bar_heights_are_proportional():
    drawing = bar_chart("t", ["a", "b"], ["", ""], [Series("s", [0.5, 0.25])])
    tall, short = (float(h) for h in re.findall(r'height="([\d.]+)" rx', drawing))
    assert tall == pytest.approx(2 * short, abs=0.2)


def test_text_is_aligned_and_readable():
    text = str(report(title="My \x07 model"))
    lines = text.splitlines()
    assert lines[0] == "My \ufffd model"
    head = next(line for line in lines if line.strip().startswith("@1"))
    ends = [head.index(f"@{k}") + 2 for k in (1, 3, 5)]
    row = next(line for line in lines if line.startswith("  nDCG"))
    assert all(row[end - 1] == "]" for end in ends)
    assert max(map(len, lines)) <= 100
    assert repr(report()) == str(report())


def test_small_formats():
    assert (
        align([["a", "1"], ["heading over all"], ["bcd", "23"]])
        == "a     1\nheading over all\nbcd  23"
    )
    assert [per_cent(v) for v in (0.0, 1.0, 0.5, 0.00051, 0.000051, 2e-7)] == [
        "0.00", "100.00", "50.00", "0.051", "0.0051", "2.0e-05",
    ]  # fmt: skip
    assert count_range(1, 1_234_567, compact=True) == "1\N{EN DASH}1.2M"
    assert printable("a\tb\xa0c\nd\x07") == "a b c d\ufffd"
    assert printable("\u06cc\u200c\u06a9") == "\u06cc\u200c\u06a9"


def test_label_texts_stand_before_names() -> None:
    Y = [[0], [1], [1]]
    top = [[1, 0], [0, 1], [0, 1]]
    texts = ["Fire & <smoke>", ""]
    report = lt.evaluate(Y, top, k=1, label_names=["F1", "W2"], label_texts=texts, n_resamples=0)
    page = report.to_html()
    assert "Fire &amp; &lt;smoke&gt; (F1)" in page and ">W2<" in page
    assert report.to_dict()["labels"]["missed"][1]["text"] == "Fire & <smoke>"
    with pytest.raises(ValueError, match=r"label_texts .*\b1\b.*\b2\b"):
        lt.evaluate(Y, top, k=1, label_texts=["x"], n_resamples=0)


def test_the_reliability_plot_names_its_axes() -> None:
    top = lt.TopK([[0], [1]], [[0.9], [0.2]], 2)
    page = lt.evaluate([[0], [0]], top, k=1, probabilities=True, n_resamples=0).to_html()
    chart = page[page.index('aria-label="Reliability') :].partition("</svg>")[0]
    for text in ("probability given", "answers that are right", "0 %", "100 %"):
        assert f">{text}</text>" in chart
    assert chart.count("rotate(-90") == 1
