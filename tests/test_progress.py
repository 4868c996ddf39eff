"""One line on a terminal while long work runs, and nothing elsewhere."""

from __future__ import annotations

import threading

import pytest

from longtail import _progress
from longtail._progress import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


def on_a_terminal(what: str, start: int = 0) -> Progress:
    progress = Progress(what, start=start)
    assert not progress.on  # standard error is captured here
    progress.on = True
    return progress


def test_share_and_time_left(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with on_a_terminal("work") as progress:
        progress(1, 4)
        assert capsys.readouterr().err == ""  # shorter than a second so far
        clock[0] = 90.0
        progress(1, 4, "a note")
        assert capsys.readouterr().err == "\r\x1b[Kwork   25%  4:30 left  a note"
        clock[0] = 90.05
        progress(2, 4)
        assert capsys.readouterr().err == ""  # ten times a second at most
    assert capsys.readouterr().err == "\r\x1b[K"


def test_what_an_earlier_run_did_took_no_time(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = on_a_terminal("rest", start=50)
    clock[0] = 10.0
    progress(75, 100)
    assert "75%  0:10 left" in capsys.readouterr().err


def test_an_unknown_total_shows_the_note(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    progress = on_a_terminal("file")
    clock[0] = 2.0
    progress(5, 0, "5 MB")
    assert capsys.readouterr().err == "\r\x1b[Kfile  5 MB"


def test_a_stop_is_passed_on() -> None:
    stop = threading.Event()
    progress = Progress("work", stop=stop)
    progress(1, 2)
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        progress(2, 2)
