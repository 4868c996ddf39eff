"""A save that is killed, interrupted or out of space leaves the old model or the new one, whole."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_files import same, small_state

from longtail.persist import load, replace, save
from longtail.persist.exchange import exchange

STEPS = ("open", "write", "fsync", "mkdir", "rename", "unlink", "rmdir", "fchmod")
STRATEGIES = ("exchange", "renames")


@pytest.fixture(params=STRATEGIES)
def strategy(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Both ways of putting a model in place; the first needs a file system that can exchange."""
    if request.param == "renames":
        monkeypatch.setattr(replace, "exchange", lambda first, second: False)
    else:
        for name in "ab":
            (tmp_path / name).mkdir()
        if not exchange(str(tmp_path / "a"), str(tmp_path / "b")):
            pytest.skip("this file system cannot exchange two directories")
        for name in "ab":
            (tmp_path / name).rmdir()
    return request.param


def whole(path: Path) -> int:
    """Version of the model at ``path``, which must pass every check."""
    found = load(path, verify=True)
    assert same(found, small_state(found.meta["version"]))
    return found.meta["version"]


def environment() -> dict[str, str]:
    """For a subprocess that imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_kill_9_at_random_moments(tmp_path: Path, strategy: str) -> None:
    """Fifteen real kills a strategy, each in the middle of a busy process that only saves.

    ``LONGTAIL_KILLS`` sets another number.
    """
    rng = random.Random(strategy)
    nursery = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("saver.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert nursery.stdin and nursery.stdout
    path = tmp_path / "m"
    save(path, small_state(0))
    last, seen = 0, set()
    try:
        for _ in range(int(os.environ.get("LONGTAIL_KILLS", "15"))):
            nursery.stdin.write(f"{path} {strategy} {last}\n")
            nursery.stdin.flush()
            child = int(nursery.stdout.readline())
            time.sleep(rng.uniform(0.002, 0.08))
            os.kill(child, signal.SIGKILL)
            assert nursery.stdout.readline() == "dead\n"
            version = whole(path)
            assert version >= last
            last = version
            seen.add(version)
    finally:
        nursery.stdin.close()
        nursery.wait(timeout=10)
    assert len(seen) > 1, "the children never finished a save: the kills prove nothing"
    save(path, small_state(last), overwrite=True)
    assert os.listdir(tmp_path) == ["m"]  # and the next save cleans up


def run_killed(path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Saves in a forked child that kills itself at step ``at``; False if it got to the end."""
    child = os.fork()
    if child == 0:
        counting(lambda name, count: os.kill(os.getpid(), signal.SIGKILL), at, monkeypatch)
        try:
            save(path, small_state(2), overwrite=True)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def counting(
    act: Callable[[str, int], None], at: int, monkeypatch: pytest.MonkeyPatch, steps: Any = STEPS
) -> None:
    """Wraps the calls a save consists of: number ``at`` does half of its work, and then ``act``."""
    count = 0

    def wrap(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                if name == "write" and len(args[1]) > 1:
                    original(args[0], args[1][: len(args[1]) // 2])
                act(name, count)
            return original(*args, **kwargs)

        return call

    for name in steps:
        monkeypatch.setattr(os, name, wrap(name, getattr(os, name)))
    monkeypatch.setattr(replace, "exchange", wrap("exchange", replace.exchange))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork in a process with threads
def test_kill_9_at_every_step(
    tmp_path: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exhaustive: a save makes some forty system calls, and is killed at each of them in turn."""
    path = tmp_path / "m"
    outcomes = []
    for at in range(1, 1000):
        save(path, small_state(1), overwrite=True)
        assert os.listdir(tmp_path) == ["m"]
        killed = run_killed(path, at, monkeypatch)
        outcomes.append(whole(path))
        if not killed:
            break
        if not path.exists():
            with pytest.raises(FileExistsError):  # moved back first, and then respected
                save(path, small_state(3))
            assert path.exists()
    assert outcomes[-1] == 2 and set(outcomes) == {1, 2}
    assert outcomes == sorted(outcomes), "once the new model is in place it stays"
    assert len(outcomes) > 25


def interrupt(name: str, count: int) -> None:
    raise KeyboardInterrupt


def no_space(name: str, count: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("fault", [no_space, interrupt], ids=["disk full", "Ctrl-C"])
@pytest.mark.parametrize("fresh", [True, False], ids=["new path", "overwrite"])
def test_faults_at_every_step_leave_no_litter(
    tmp_path: Path, strategy: str, fault: Callable[[str, int], None], fresh: bool
) -> None:
    """ENOSPC where space is needed, or Ctrl-C anywhere up to the swap: as if never called."""
    needs_space = ("open", "write", "fsync", "mkdir")
    steps = needs_space if fault is no_space else ("write", "fsync", "rename")
    path = tmp_path / "folder" / "m"
    finished = False
    for at in range(1, 1000):
        if not fresh:
            save(path, small_state(1), overwrite=True)
        with pytest.MonkeyPatch.context() as patch:
            counting(fault, at, patch, steps)
            try:
                save(path, small_state(2), overwrite=True)
                finished = True
            except (OSError, KeyboardInterrupt) as error:
                assert isinstance(error, KeyboardInterrupt) or error.errno == errno.ENOSPC
        if fresh and not finished and not path.exists():
            assert os.listdir(tmp_path) in ([], ["folder"])
            assert not path.parent.exists() or os.listdir(path.parent) == []
        else:
            assert os.listdir(path.parent) == ["m"]
            assert whole(path) in ((1, 2) if not fresh else (2,))
        if finished:
            break
        if fresh and path.exists():
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
    assert finished and at > 8


def test_a_file_that_grows_too_large(tmp_path: Path) -> None:
    """The same with a real error of the kernel: a limit on the size of files."""
    save(tmp_path / "m", small_state(1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            save(tmp_path / "m", small_state(2), overwrite=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert whole(tmp_path / "m") == 1
    assert os.listdir(tmp_path) == ["m"]


FULL_DISK = """
import os, sys
from model_files import same, small_state
from longtail.persist import load, save
disk = sys.argv[1]
save(disk + "/m", small_state(1))
ballast = os.open(disk + "/ballast", os.O_WRONLY | os.O_CREAT)
try:
    while True:
        os.write(ballast, bytes(4096))
except OSError:
    pass
try:
    save(disk + "/m", small_state(2), overwrite=True)
except OSError as error:
    print(error.strerror)
assert same(load(disk + "/m", verify=True), small_state(1))
print(*sorted(os.listdir(disk)))
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """And with a disk that is full, in a mount namespace of its own, where that is allowed."""
    inside = 'mount -t tmpfs -o size=64k tmpfs "$1" && exec "$2" -c "$3" "$1"'
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    try:
        subprocess.run([*unshare, 'mount -t tmpfs tmpfs "$0"', str(tmp_path)], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine does not let us mount a small disk")
    done = subprocess.run(
        [*unshare, inside, "sh", str(tmp_path), sys.executable, FULL_DISK],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "No space left on device\nballast m\n", done.stderr


def test_siblings_of_the_living_are_left_alone(tmp_path: Path) -> None:
    """Another save to the same path, in the middle of its work, is not swept away."""
    path = tmp_path / "m"
    with replace.replacing(path, overwrite=True) as staging:
        save(path, small_state(5))
        assert Path(staging.path).is_dir()
        os.write(staging.manifest, b'{"format": "longtail-model"}')
    assert (path / "manifest.json").read_bytes() == b'{"format": "longtail-model"}'
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("moment", ["mkdir", "create", "lock"])
def test_a_sweeper_at_the_wrong_moment(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes before the writer holds its lock takes its sibling; it starts again."""
    path = tmp_path / "m"
    swept = []

    def sweeping(original: Callable[..., Any], when: Callable[..., bool]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if moment == "mkdir":
                original(*args, **kwargs)
            if not swept and when(*args):
                swept.append(True)
                replace.sweep(str(path))
                assert os.listdir(tmp_path) == []
            return None if moment == "mkdir" else original(*args, **kwargs)

        return call

    if moment == "lock":  # the manifest is there, but not locked yet
        monkeypatch.setattr(replace, "lock", sweeping(replace.lock, lambda *args: True))
    elif moment == "create":
        creating = sweeping(os.open, lambda name, *args: name == "manifest.json")
        monkeypatch.setattr(os, "open", creating)
    else:
        monkeypatch.setattr(os, "mkdir", sweeping(os.mkdir, lambda *args: True))
    save(path, small_state(4))
    assert swept and whole(path) == 4
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("content", ["empty", "half", "stranger"])
def test_siblings_of_the_dead_are_swept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "m"
    dead = Path(replace.sibling(str(path), ".new"))
    dead.mkdir()
    if content != "empty":
        (dead / "manifest.json").touch()
        (dead / "arrays.bin").write_bytes(b"half")
    if content == "stranger":
        (dead / "diary.txt").write_text("not ours")
    neighbour = tmp_path / ".m2.00000000-0.new"  # belongs to another model
    neighbour.mkdir()
    save(path, small_state(1))
    assert neighbour.exists()
    assert dead.exists() == (content == "stranger")
    if content == "stranger":  # left as it is: what holds more than a model is not ours
        assert sorted(os.listdir(dead)) == ["arrays.bin", "diary.txt", "manifest.json"]


def test_siblings_of_another_machine_are_left_until_they_are_old(tmp_path: Path) -> None:
    path = tmp_path / "m"
    other = tmp_path / ".m.deadbeef-000000000000.new"
    other.mkdir()
    (other / "manifest.json").touch()
    save(path, small_state(1))
    assert other.exists()
    week_ago = time.time() - 7 * 24 * 3600
    os.utime(other, (week_ago, week_ago))
    save(path, small_state(1), overwrite=True)
    assert not other.exists()


USERS = (".m.backup.old", ".m.x.old", ".m.2024-01-01.new", ".m.deadbeef-00000000000.old")
USERS += (".m.deadbeef-0000000000000.new", ".m.DEADBEEF-000000000000.old", ".m.a.deadbeef-0.old")


@pytest.mark.parametrize("name", USERS)
def test_folders_of_users_are_neither_swept_nor_read(tmp_path: Path, name: str) -> None:
    """Whatever is in them and however old they are; here, models that somebody put aside."""
    save(tmp_path / "kept", small_state(7))
    (tmp_path / "kept").rename(tmp_path / name)
    week_ago = time.time() - 7 * 24 * 3600
    os.utime(tmp_path / name, (week_ago, week_ago))
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "m")
    save(tmp_path / "m", small_state(1))
    save(tmp_path / "m", small_state(2), overwrite=True)
    assert whole(tmp_path / "m") == 2 and whole(tmp_path / name) == 7


@pytest.mark.parametrize("content", ["photos", "folder", "manifest", "link"])
def test_a_name_of_ours_is_not_enough(tmp_path: Path, content: str) -> None:
    """A folder of the right name, on this machine and old, that holds something else."""
    for suffix in (".old", ".new"):
        planted = Path(replace.sibling(str(tmp_path / "m"), suffix))
        elsewhere = tmp_path / f"elsewhere{suffix}"
        if content == "link":
            save(elsewhere, small_state(5))
            planted.symlink_to(elsewhere)
        else:
            planted.mkdir()
            (planted / "manifest.json").write_text('{"name": "my web app"}')
        if content == "photos":
            (planted / "me.jpg").touch()
        elif content == "folder":
            (planted / "arrays.bin").mkdir()
    before = sorted(path for path in tmp_path.rglob("*"))
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "m")
    save(tmp_path / "m", small_state(1))
    assert {*before, tmp_path / "m"} <= set(tmp_path.rglob("*"))


def test_a_crash_between_two_renames_is_survived(tmp_path: Path) -> None:
    path = tmp_path / "m"
    save(path, small_state(1))
    path.rename(replace.sibling(str(path), ".old"))
    assert whole(path) == 1  # load finds it, and changes nothing
    assert not path.exists()
    with pytest.raises(FileExistsError):
        save(path, small_state(2))
    assert whole(path) == 1 and os.listdir(tmp_path) == ["m"]


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    for version in (1, 2):
        save(path, small_state(version), overwrite=True)
        assert whole(path) == version
