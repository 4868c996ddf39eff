"""Data sets by name: the public benchmarks, the user's own, and how they come to this machine.

A name is looked for, in this order, as a folder in ``$LONGTAIL_DATA`` and in the cache; what is not
there is downloaded if its entry has an address. Most files of the Extreme Classification Repository
sit behind a download page that a program cannot pass, so those entries have none: the error says
where to get the files and where to put them.
"""

from __future__ import annotations

import difflib
import importlib
import os
import re
import shutil
import tempfile
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longtail.data.cache import cache_dir, locked
from longtail.data.published import BENCHMARKS, Benchmark
from longtail.exceptions import DataFormatError

__all__ = ["benchmark", "build_dataset", "fetch_dataset", "list_datasets", "register_dataset"]

_entries: dict[str, Benchmark] = {}
_keys: dict[str, str] = {}


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.casefold())


def _add(entry: Benchmark) -> None:
    _entries[entry.name] = entry
    _keys.update({_key(name): entry.name for name in (entry.name, *entry.aliases)})


for _entry in BENCHMARKS:
    _add(_entry)


def list_datasets() -> list[Benchmark]:
    """Return every registered data set, public ones first, in the order of registration.

    >>> [entry.name for entry in list_datasets()][:3]
    ['icd10cm', 'Mediamill', 'Bibtex']
    """
    return list(_entries.values())


def benchmark(name: str) -> Benchmark:
    """Return the entry of a data set: its published statistics, propensity constants and source.

    Case and punctuation do not matter. An unknown name is a ``KeyError`` that names its neighbours.

    Parameters
    ----------
    name : str
        Its name, or another name for it.

    >>> entry = benchmark("amazon670k")
    >>> entry.name, entry.n_labels, entry.labels_per_point, (entry.a, entry.b)
    ('Amazon-670K', 670091, 5.45, (0.6, 2.6))
    """
    try:
        return _entries[_keys[_key(name)]]
    except KeyError:
        close = difflib.get_close_matches(_key(name), _keys, n=3, cutoff=0.5)
        hint = " or ".join(dict.fromkeys(_keys[k] for k in close)) or "a path"
        raise KeyError(f"there is no data set {name!r}: did you mean {hint}?") from None


def register_dataset(
    name: str,
    url: str | Mapping[str, str] | None = None,
    *,
    sha256: str | Mapping[str, str] | None = None,
    layout: str | None = None,
    overwrite: bool = False,
    **facts: Any,
) -> Benchmark:
    """Add a data set of your own, so that ``load_dataset(name)`` downloads and reads it.

    ``url`` is the address of an archive (zip, tar.gz, …), which is unpacked, or of a single file,
    or a mapping from file names to addresses; ``sha256`` its checksum, or theirs by file name. Give
    it: without one the download is taken on trust. ``layout`` names the reader where the files do
    not tell. ``facts`` are any other fields of ``Benchmark``: statistics, ``a``, ``b``, ….

    Without a ``url`` the data set is read from a folder of its name in ``$LONGTAIL_DATA`` or the
    cache. Registration lasts as long as the process. Refuses names that would not do as a folder
    name, names and aliases that are taken unless ``overwrite`` is set, checksums for files that are
    not there, and unknown facts.

    Parameters
    ----------
    name : str
        Its name, which is also that of its folder.
    url : str or mapping, default=None
        Address of an archive, or addresses by file name.
    sha256 : str or mapping, default=None
        Checksum, or checksums by file name.
    layout : str, default=None
        The reader, where files do not tell.
    overwrite : bool, default=False
        Replace what is there.
    **facts : object
        Further fields of ``Benchmark``.

    >>> register_dataset("my-tags", "https://example.org/tags.zip", n_labels=1200).a
    0.55
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(
            f"{name!r} will not do as a name: use letters, digits, '.', '_' and '-', and begin "
            "with a letter or digit"
        )
    if isinstance(url, Mapping):
        url = {_file_name(file): str(address) for file, address in url.items()}
    if isinstance(sha256, Mapping):
        sha256 = {str(file): str(digest) for file, digest in sha256.items()}
        unknown = set(sha256) - set(url if isinstance(url, dict) else ())
        if unknown:
            raise ValueError(f"sha256 names {sorted(unknown)}, but url has no such files")
    elif sha256 is not None and not isinstance(url, str):
        raise ValueError("a single sha256 needs a single url")
    entry = Benchmark(
        name, url=url, sha256=sha256, layout=layout, **{"source": "", "numbers": "", **facts}
    )
    for wanted in (name, *entry.aliases):
        holder = _keys.get(_key(wanted))
        if holder is not None and (holder != name or not overwrite):
            raise ValueError(
                f"the name {wanted!r} is taken by {holder}: choose another, or pass overwrite=True "
                "to replace a data set of the very same name"
            )
    _add(entry)
    return entry


def _file_name(name: str) -> str:
    if not name or name in (".", "..") or set(name) & set("/\\:\0"):
        raise ValueError(f"{name!r} is not the name of a file")
    return name


def fetch_dataset(name: str) -> Path:
    """Return the folder with the files of a registered data set, downloaded and unpacked if need
    be.

    Folders that are there already are used as they are. The new folder appears in the cache only
    when it is complete; several processes may ask at once. Raises ``FileNotFoundError`` where the
    files must be fetched by hand, saying from where and to where, and whatever
    ``longtail.data.download`` raises.

    Parameters
    ----------
    name : str
        Its name, or another name for it.
    """
    entry = benchmark(name)
    if entry.builder is not None:
        raise ValueError(f"{entry.name} has no files: load_dataset({entry.name!r}) makes it")
    target = cache_dir() / "datasets" / entry.name
    places = [target]
    if os.environ.get("LONGTAIL_DATA"):
        places.insert(0, Path(os.environ["LONGTAIL_DATA"]).expanduser() / entry.name)
    for folder in places:
        if folder.is_dir():
            return folder
    if entry.url is None:
        raise FileNotFoundError(_by_hand(entry, target))
    with locked(cache_dir() / "locks" / f"{entry.name}.lock"):
        if not target.is_dir():
            _download_into(entry, target)
    return target


def build_dataset(entry: Benchmark) -> Any:
    """Return the data set of an entry that has a builder."""
    module, _, function = str(entry.builder).partition(":")
    return getattr(importlib.import_module(module), function)()


def _by_hand(entry: Benchmark, target: Path) -> str:
    origin = f"from {entry.source} " if entry.source else ""
    twin = _entries.get("pecos-" + entry.name.lower().replace("wikipedia", "wiki"))
    return (
        f"the files of {entry.name} are not on this machine and cannot be downloaded by a program: "
        f"get them {origin}and unpack them into {target}, or pass the folder where they are"
        + (f". A copy that downloads by itself is {twin.name!r}" if twin else "")
    )


def _download_into(entry: Benchmark, target: Path) -> None:
    # Network and archive modules take as long to import as the rest of this room together.
    from longtail.data.archive import is_archive, unpack
    from longtail.data.download import download

    assert entry.url is not None
    single = isinstance(entry.url, str)
    files = {_last_part(entry.url): entry.url} if isinstance(entry.url, str) else entry.url
    staging = cache_dir() / "downloads" / entry.name
    for file, url in files.items():
        checksum = entry.sha256.get(file) if isinstance(entry.sha256, dict) else entry.sha256
        download(url, staging / file, sha256=checksum)
    if single and is_archive(next(iter(files))):
        archive = staging / next(iter(files))
        try:
            unpack(archive, target)
        except DataFormatError:
            archive.unlink()  # so that the next attempt fetches it anew
            raise
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        working = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        for file in files:
            os.replace(staging / file, working / file)
        os.chmod(working, 0o755)
        os.rename(working, target)
    shutil.rmtree(staging, ignore_errors=True)


def _last_part(url: str) -> str:
    return urllib.parse.unquote(urllib.parse.urlsplit(url).path.rsplit("/", 1)[-1]) or "download"
