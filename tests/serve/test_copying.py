"""A model that is written over in place: the old one goes on, or the new one is taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from serve_cases import children, save_model, serving, wait_for

import longtail as lt

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")

from longtail.persist.mark import mark_of
from longtail.serve.copying import load_copy


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("copying")
    return save_model(folder / "old"), save_model(folder / "new", extra="phone")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, in this process and those it starts."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "temporary"


def test_files_copied_over_a_served_model(
    models: tuple[Path, Path], tmp_path: Path, temporary: Path
) -> None:
    """``cp new/* served/``, in every order and cut short: no crash, and no mixture is answered."""
    old, new = models
    served = tmp_path / "served"
    shutil.copytree(old, served)
    with serving(served, "--reload-seconds", 0.1) as server:
        before = server.predict("paper jam", "wifi", k=3)
        for name in ("arrays.bin", "manifest.json"):
            (served / name).write_bytes(b"")  # what cp does first
            wait_for(lambda: server.ask("/health")[2]["reload_error"])
            assert server.predict("paper jam", "wifi", k=3) == before
            whole = (new / name).read_bytes()
            (served / name).write_bytes(whole[: len(whole) // 2])
            assert server.predict("paper jam", "wifi", k=3) == before
            (served / name).write_bytes(whole)
        wait_for(lambda: server.predict("phone talk", k=1) == [["phone"]])
        subprocess.run(["cp", *map(str, old.iterdir()), str(served)], check=True)
        wait_for(lambda: "phone" not in server.predict("phone talk", k=4)[0])
        assert server.predict("paper jam", "wifi", k=3) == before
        assert server.ask("/health")[2]["reload_error"] is None
        shutil.rmtree(served)
        assert server.predict("paper jam", "wifi", k=3) == before
    assert os.listdir(temporary) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_share_one_copy(models: tuple[Path, Path], tmp_path: Path, temporary: Path) -> None:
    served = tmp_path / "served"
    shutil.copytree(models[0], served)

    def mapped() -> set[str]:
        """Numbers of the files that hold the arrays, over all workers and their supervisor."""
        return {
            line.split()[4]
            for pid in (server.process.pid, *children(server.process.pid))
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
            if "arrays.bin" in line
        }

    with serving(served, "--workers", 2, "--reload-seconds", 0.1) as server:
        wait_for(lambda: len(children(server.process.pid)) >= 2)
        (first,) = mapped()
        save_model(served, extra="phone")
        wait_for(lambda: len(now := mapped()) == 1 and first not in now)
        assert server.predict("phone talk", k=1) == [["phone"]]
    assert os.listdir(temporary) == []


def test_the_copy_is_removed_when_all_have_it(
    models: tuple[Path, Path], tmp_path: Path, temporary: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(load_copy(str(models[0]), str(shared), 3)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert os.listdir(shared) == ["lock"]
    for tagger in found:
        assert tagger.predict(["paper jam"], k=1)[0][0][0] == "printer"


def test_damaged_models_leave_nothing_behind(
    models: tuple[Path, Path], tmp_path: Path, temporary: Path
) -> None:
    broken, shared = tmp_path / "broken", tmp_path / "shared"
    shutil.copytree(models[0], broken)
    arrays = bytearray((broken / "arrays.bin").read_bytes())
    manifest = json.loads((broken / "manifest.json").read_bytes())
    arrays[manifest["arrays"]["label_counts"]["offset"]] ^= 1  # which only the checksums tell
    (broken / "arrays.bin").write_bytes(arrays)
    shared.mkdir()
    for where in (None, str(shared)):
        with pytest.raises(lt.exceptions.ModelFormatError, match=f"{broken}.*checksum"):
            load_copy(str(broken), where, 2)
        with pytest.raises(FileNotFoundError):
            load_copy(str(tmp_path / "nothing"), where, 2)
    assert os.listdir(temporary) == [] and os.listdir(shared) == ["lock"]


def test_without_room_the_model_is_read_into_memory(
    models: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    tagger = load_copy(str(models[0]))
    assert tagger.predict(["paper jam"], k=1)[0][0][0] == "printer"
    assert tagger.vectorizer_.idf_.flags.writeable  # in memory, not mapped


def test_a_mark_tells_every_change(models: tuple[Path, Path], tmp_path: Path) -> None:
    served = tmp_path / "served"
    assert mark_of(str(served)) is None
    shutil.copytree(models[0], served)
    marks = [mark_of(str(served))]
    for name in ("arrays.bin", "manifest.json"):
        (served / name).write_bytes((served / name).read_bytes())
        marks.append(mark_of(str(served)))
    assert len(set(marks)) == 3
