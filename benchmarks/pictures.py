"""Makes the pictures of README and docs, from a model trained on the sample.

    python benchmarks/pictures.py          # needs Chromium, matplotlib, and the extra serve

Copies the sample, trains and measures as docs/tutorial.md does, starts the service and photographs
it with the browser that the tests use; the curve and the bars are drawn as SVG. Pictures go to
docs/_static/pictures, each well below 100 kB.
"""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "_static" / "pictures"
sys.path.insert(0, str(ROOT / "tests" / "serve"))

from browser import Browser  # noqa: E402
from serve_cases import serving  # noqa: E402

import longtail as lt  # noqa: E402
from longtail.report.charts import Series, bar_chart  # noqa: E402
from longtail.report.formatting import count_range  # noqa: E402

TEXT = "Hay fever due to grass pollen, with wheezing"


def longtail(*arguments: object, folder: Path) -> None:
    """Run a command as a user does."""
    source = str(ROOT / "src")
    subprocess.run(
        [sys.executable, "-m", "longtail", *map(str, arguments)],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": source},
    )


def photograph(browser: Browser, name: str, height: int) -> None:
    """Save the upper part of what the browser shows, with as few colours as look the same."""
    width = browser.run("document.documentElement.clientWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture = picture.quantize(96, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    picture.save(PICTURES / name, optimize=True)
    print(f"{name}: {(PICTURES / name).stat().st_size:,} bytes")


def pages(folder: Path, browser: Browser) -> None:
    with serving(folder / "model", "--title", "Respiratory diagnoses", "--no-log") as server:
        for name, width, height in (("page.png", 1200, 900), ("phone.png", 390, 1180)):
            browser.open(server.address, width=width, height=height)
            browser.until("document.querySelectorAll('#found details').length > 0")
            browser.type("text", TEXT)
            browser.until("document.querySelectorAll('#marked mark').length > 0")
            browser.run("document.activeElement.blur()")
            photograph(browser, name, height)


def report(folder: Path, browser: Browser) -> None:
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=1100,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    browser.call("Page.navigate", url=(folder / "report.html").as_uri())
    browser.until("document.querySelectorAll('svg.chart').length > 3")
    photograph(browser, "report.png", 1430)


def drawings(folder: Path) -> None:
    """The trade-off and the bars from head to tail, with colours that do on light and dark."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "longtail", "font.size": 10})
    longtail("tradeoff", "model", "new-diagnoses.csv", "--plot", "curve.svg", folder=folder)
    drawn = (folder / "curve.svg").read_text("utf-8")
    (PICTURES / "tradeoff.svg").write_text(re.sub(r"<dc:date>.*?</dc:date>", "", drawn), "utf-8")
    bins = lt.load(folder / "model").report_.bins
    notes = [count_range(b.min_count, b.max_count, compact=True) for b in bins]
    series = [Series(f"k = {k}", [b.recall[k] for b in bins]) for k in (1, 3, 5)]
    chart = bar_chart("Positives found", [b.name for b in bins], notes, series)
    (PICTURES / "head-to-tail.svg").write_text(_alone(chart), "utf-8")
    for name in ("tradeoff.svg", "head-to-tail.svg"):
        print(f"{name}: {(PICTURES / name).stat().st_size:,} bytes")


def _alone(chart: str) -> str:
    """A chart of a report as a file of its own, with its legend inside."""
    svg = chart[: chart.index("</svg>")]
    style = (
        "text{font:11px sans-serif;fill:#6b7683;text-anchor:middle}.tick{text-anchor:end}"
        ".grid{stroke:#8b95a1;stroke-opacity:.35}.base{stroke:#6b7683}"
        ".k1{fill:#a9cbe8}.k3{fill:#5c9bcf}.k5{fill:#1f6fb5}"
    )
    legend = "".join(
        f'<rect class="{shade}" x="{x}" y="2" width="10" height="10"/>'
        f'<text x="{x + 28}" y="11">{name}</text>'
        for shade, x, name in (("k1", 210, "k = 1"), ("k3", 262, "k = 3"), ("k5", 314, "k = 5"))
    )
    opened = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" width="560" ', 1)
    head, _, rest = opened.partition(">")
    return f"{head}><style>{style}</style>{rest}{legend}</svg>\n"


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        longtail("sample", folder=folder)
        options: Any = ("--label-separator", ";", "--label-texts", "codes.tsv")
        longtail("train", "diagnoses.csv", "-o", "model", *options, folder=folder)
        longtail("evaluate", "model", "new-diagnoses.csv", "--report", "report.html", folder=folder)
        drawings(folder)
        browser = Browser(folder / "profile")
        try:
            pages(folder, browser)
            report(folder, browser)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
