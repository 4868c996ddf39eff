"""Ctrl-C, a closed pipe, a full disk: what is left is whole."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_cases import environment, longtail_command, run, write_tickets

import longtail as lt

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interrupted")
    write_tickets(folder / "tickets.jsonl")
    run("train", folder / "tickets.jsonl", "-o", folder / "model", "--test-size", 0)
    return folder / "model"


def test_prediction_streams_and_stops_at_ctrl_c(model: Path, tmp_path: Path) -> None:
    command = longtail_command("predict", model, "-", "-o", tmp_path / "out.jsonl")
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(b"paper jam\n" * 2500)
    process.stdin.flush()
    deadline = time.monotonic() + 30
    # Two batches are written although the input has not ended: prediction streams.
    while not (tmp_path / "out.jsonl").exists() or _lines(tmp_path / "out.jsonl") < 2000:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    told = process.stderr.read().decode()
    assert "--resume" in told and told.strip().endswith("interrupted")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(rows) >= 2000


def test_ctrl_c_is_ignored_where_the_shell_says_so(model: Path) -> None:
    """A shell starts the background commands of a script so; Ctrl-C is for those in front."""
    process = subprocess.Popen(
        longtail_command("predict", model, "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # what a buffer of ours has read, communicate would not return
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"paper jam\n" * 1000)
    process.stdin.flush()
    process.stdout.readline()  # it is at work
    process.send_signal(signal.SIGINT)
    answers, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and answers.count(b"\n") == 999


TREES = ("--model", "ensemble", "--test-size", 0, "--jobs", 1, "--no-calibrate")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows to learn from; beside them ``whole``, a model of a training that was not cut short."""
    folder = tmp_path_factory.mktemp("rows")
    data = lt.data.make_longtail(n=2000, d=1500, L=2000, random_state=3)
    lt.write_xc(folder / "rows.txt", data.train.X, data.train.Y)
    run("train", folder / "rows.txt", "-o", folder / "whole", *TREES)
    return folder / "rows.txt"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_training_goes_on_where_it_was(stop: signal.Signals, rows: Path, tmp_path: Path) -> None:
    output, parts = tmp_path / "model", tmp_path / "model.unfinished"
    process = subprocess.Popen(
        longtail_command("train", rows, "-o", output, *TREES),
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stderr is not None
    deadline = time.monotonic() + 60
    while not any((parts / "model").glob("member1/tree/manifest.json")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)
    told = run("train", rows, "-o", output, *TREES, code=2).stderr
    assert "another training" in told.splitlines()[-1]
    process.send_signal(stop)
    process.send_signal(signal.SIGCONT)
    code, told = process.wait(timeout=30), process.stderr.read().decode()
    assert code == (130 if stop is signal.SIGINT else -signal.SIGKILL)
    assert ("goes on from there" in told) == (stop is signal.SIGINT)
    assert parts.is_dir() and not output.exists()
    again = run("train", rows, "-o", output, *TREES)
    assert "going on with" in again.stderr and not parts.exists()
    whole = rows.parent / "whole"
    assert (whole / "manifest.json").read_text().count('"offset"') > 20
    assert (output / "arrays.bin").read_bytes() == (whole / "arrays.bin").read_bytes()


def test_parts_of_another_training_are_not_used(tmp_path: Path) -> None:
    data = write_tickets(tmp_path / "tickets.jsonl")
    options = ("-o", tmp_path / "model", "--test-size", 0, "--model", "xr-linear")
    with open(data) as file:  # parts of a training on other rows
        lt.Tagger(model="xr-linear").fit(
            [json.loads(line)["text"] for line in file][:50],
            [["printer"], ["login"]] * 25,
            checkpoint=tmp_path / "model.unfinished",
        )
    done = run("train", data, *options)
    assert "starting anew" in done.stderr and not (tmp_path / "model.unfinished").exists()
    assert "--memory-limit" in run("train", "--help").stdout
    refused = run("train", data, *options, "--overwrite", "--memory-limit", "1MB", code=2)
    assert "--memory-limit" in refused.stderr.splitlines()[-1]


def test_a_folder_of_parts_that_is_none(tmp_path: Path) -> None:
    data = write_tickets(tmp_path / "tickets.jsonl")
    parts = tmp_path / "model.unfinished"
    options = (data, "-o", tmp_path / "model", "--test-size", 0, "--model", "one-vs-all")
    (parts / "model").mkdir(parents=True)
    (parts / "mine.txt").write_text("not to be lost")
    told = run("train", *options, code=2).stderr
    assert "mine.txt is no part of a training" in told.splitlines()[-1]
    assert (parts / "mine.txt").read_text() == "not to be lost"
    (parts / "mine.txt").unlink()
    (parts / "model" / "problem.json").write_text("")  # a failure of power
    assert "starting anew" in run("train", *options).stderr
    assert (tmp_path / "model").is_dir() and not parts.exists()
    run("train", tmp_path / "none.csv", "-o", tmp_path / "new" / "model", code=2)
    assert not (tmp_path / "new").exists()


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def test_a_reader_that_closes_the_pipe_is_no_error(model: Path) -> None:
    command = longtail_command("predict", model, "-")
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"paper jam\n" * 1000)
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    try:
        process.stdin.write(b"paper jam\n" * 5000)
        process.stdin.close()
    except BrokenPipeError:
        pass
    assert process.wait(timeout=30) == 0
    assert process.stderr is not None and process.stderr.read() == b""


def test_a_disk_that_fills_up_leaves_the_old_model(model: Path) -> None:
    before = {file.name: file.read_bytes() for file in model.iterdir()}

    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    data = model.parent / "tickets.jsonl"
    done = subprocess.run(
        longtail_command("train", data, "-o", model, "--overwrite", "--test-size", 0),
        capture_output=True,
        env=environment(),
        preexec_fn=no_room,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.decode().strip().splitlines()[-1].startswith("longtail: ")
    assert {file.name: file.read_bytes() for file in model.iterdir()} == before
