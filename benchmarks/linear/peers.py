"""The systems Longtail is compared with, each in a virtual environment of its own.

    python benchmarks/linear/peers.py setup [NAME ...]     create what is missing (minutes)
    python benchmarks/linear/peers.py list                 what there is, and where

The environments go to ``benchmarks/.peers/``, or where the environment variable
``LONGTAIL_PEERS`` points. They are separate because the systems contradict one another (one needs
NumPy below 2), and because none of them may be able to disturb the measurement of another.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PEERS", "Peer", "interpreter", "peers_folder"]


@dataclass(frozen=True)
class Peer:
    """One environment: ``package`` and the exact versions of what it ``needs``.

    With ``bare`` the package is installed without what it asks for itself; ``needs`` is complete.
    """

    package: str
    needs: tuple[str, ...]
    bare: bool = False


PEERS = {
    # XR-Linear uses neither torch nor transformers, which libpecos lists for its other models.
    "pecos": Peer(
        "libpecos==1.2.8", ("numpy==1.26.4", "scipy==1.13.1", "scikit-learn==1.9.1"), bare=True
    ),
    "napkinxc": Peer("napkinxc==0.7.2", ("numpy==2.4.6", "scipy==1.17.1")),
    "omikuji": Peer("omikuji==0.5.2", ("numpy==2.4.6", "scipy==1.17.1")),
    "libmultilabel": Peer(
        "libmultilabel==0.10.0", ("numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1")
    ),
    # fastText 0.9.3 trains from memory it has not set, and stops with "Encountered NaN" on most
    # inputs when compiled here; the compiled 0.9.2 does not. Its Python layer fails with NumPy 2.
    "fasttext": Peer("fasttext-wheel==0.9.2", ("numpy==1.26.4", "scipy==1.13.1")),
    "sklearn": Peer("scikit-learn==1.9.1", ("numpy==2.4.6", "scipy==1.17.1")),
}


def peers_folder() -> Path:
    """Where the environments and the prepared data are kept."""
    default = Path(__file__).resolve().parent.parent / ".peers"
    return Path(os.environ.get("LONGTAIL_PEERS") or default).resolve()


def interpreter(name: str) -> Path:
    """The Python of a peer's environment; refused where the environment is missing or outdated."""
    if not _is_ready(name):
        raise FileNotFoundError(
            f"{name} is not installed under {peers_folder()}: "
            f"run python benchmarks/linear/peers.py setup {name}"
        )
    return peers_folder() / name / "bin" / "python"


def setup(name: str, python: str) -> None:
    """Creates the environment of one peer, unless it is there with the versions of the table."""
    peer, folder = PEERS[name], peers_folder() / name
    if _is_ready(name):
        print(f"{name}: there already, {folder}")
        return
    print(f"{name}: installing {peer.package} into {folder}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]
    if peer.bare:
        subprocess.run([*pip, "install", *peer.needs], check=True)
        subprocess.run([*pip, "install", "--no-deps", peer.package], check=True)
    else:
        subprocess.run([*pip, "install", peer.package, *peer.needs], check=True)
    _receipt(name).write_text(json.dumps(_pins(peer)))


def _receipt(name: str) -> Path:
    """Written last, so that an interrupted installation does not count as one."""
    return peers_folder() / name / "installed.json"


def _pins(peer: Peer) -> list[str]:
    return [peer.package, *peer.needs]


def _is_ready(name: str) -> bool:
    try:
        return bool(json.loads(_receipt(name).read_text()) == _pins(PEERS[name]))
    except (OSError, ValueError):
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=["setup", "list"])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(PEERS)}")
    parser.add_argument("--python", default=sys.executable, help="interpreter to build upon")
    args = parser.parse_args()
    if unknown := sorted(set(args.names) - set(PEERS)):
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")

    failed = []
    for name in args.names or PEERS:
        if args.action == "list":
            state = "installed" if _is_ready(name) else "missing"
            print(f"{name:14} {PEERS[name].package:22} {state:10} {peers_folder() / name}")
            continue
        try:
            setup(name, args.python)
        except subprocess.CalledProcessError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr)
    if failed:
        print(f"not installed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
