"""n_jobs=-1 means the processors that this process may use, in a container too."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtail._native import core


def quota(folder: Path, groups: str, files: dict[str, str]) -> int:
    (folder / "groups").write_text(groups)
    for name, text in files.items():
        (folder / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "root" / name).write_text(text)
    return int(core.cpu_quota(str(folder / "groups"), str(folder / "root")))


@pytest.mark.parametrize(
    ("text", "processors"),
    [
        ("max 100000\n", 0),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),  # a part of a processor counts as one
        ("1000 100000\n", 1),
        ("nonsense", 0),
        ("", 0),
        ("-1 100000", 0),
        ("100000 0", 0),
    ],
)
def test_version_2(text: str, processors: int, tmp_path: Path) -> None:
    assert quota(tmp_path, "0::/\n", {"cpu.max": text}) == processors


def test_the_smallest_on_the_way_up_counts(tmp_path: Path) -> None:
    files = {"cpu.max": "max 1", "a/cpu.max": "3 1", "a/b/cpu.max": "max 1", "a/b/c/cpu.max": "5 1"}
    assert quota(tmp_path, "0::/a/b/c\n", files) == 3
    assert quota(tmp_path, "0::/not/mounted/here\n", {"cpu.max": "4 1"}) == 4  # as in a container


def test_version_1(tmp_path: Path) -> None:
    groups = "5:cpuset:/x\n4:cpu,cpuacct:/job\n1:name=systemd:/\nbroken line\n"
    files = {"cpu/job/cpu.cfs_quota_us": "250000\n", "cpu/job/cpu.cfs_period_us": "100000\n"}
    assert quota(tmp_path, groups, files) == 3
    assert quota(tmp_path, groups, {"cpu/job/cpu.cfs_quota_us": "-1\n"}) == 0


def test_no_groups_at_all(tmp_path: Path) -> None:
    assert core.cpu_quota(str(tmp_path / "none"), str(tmp_path)) == 0
