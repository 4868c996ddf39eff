"""Downloads against a local HTTP server that can be told to misbehave."""

from __future__ import annotations

import hashlib
import http.server
import itertools
import multiprocessing
import socket
import threading
import time

import pytest

from longtail.data.cache import cache_dir, locked
from longtail.data.download import download, file_sha256
from longtail.exceptions import DataFormatError

BODY = bytes(range(256)) * 4096  # 1 MiB
SHA = hashlib.sha256(BODY).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves ``body``; the knobs below say how badly."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.etag, self.date = BODY, '"v1"', None
        self.ranges = True  # understands Range
        self.cut_after = []  # bytes to send before closing, one entry per connection
        self.status = None  # answer this instead
        self.chunked = False
        self.log = []  # (Range, If-Range, status) of every request

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/data.bin"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        server, body, start, status = self.server, self.server.body, 0, 200
        asked, condition = self.headers.get("Range"), self.headers.get("If-Range")
        if server.status is not None:
            status, body = server.status, b"no"
        elif asked and server.ranges and condition in (None, server.etag, server.date):
            start, status = int(asked.removeprefix("bytes=").removesuffix("-")), 206
            if start >= len(body):
                status, start = 416, 0
        server.log.append((asked, condition, status))
        self.send_response(status)
        if server.etag:
            self.send_header("ETag", server.etag)
        if server.date:
            self.send_header("Last-Modified", server.date)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if status == 416:
            self.send_header("Content-Range", f"bytes */{len(body)}")
            body = b""
        if server.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            half = len(body) // 2
            self.wfile.write(b"%x\r\n" % half + body[:half] + b"\r\n")
            if server.cut_after:
                server.cut_after.pop()
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n" % (len(body) - half) + body[half:] + b"\r\n0\r\n\r\n")
            return
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        cut = server.cut_after.pop(0) if server.cut_after else len(body)
        self.wfile.write(body[start : start + cut])
        if cut < len(body) - start:
            self.close_connection = True


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def get(server, tmp_path, **options):
    return download(server.url, tmp_path / "data.bin", pause=0.0, timeout=5, **options)


def leftovers(tmp_path):
    return sorted(p.name for p in tmp_path.iterdir())


def test_plain(server, tmp_path):
    assert get(server, tmp_path, sha256=SHA.upper()).read_bytes() == BODY
    assert leftovers(tmp_path) == ["data.bin"]
    get(server, tmp_path, sha256=SHA)
    assert len(server.log) == 1  # the second call found the file


@pytest.mark.parametrize("validator", ["etag", "date"])
def test_resumes_after_dropped_connections(server, tmp_path, validator):
    if validator == "date":
        server.etag, server.date = 'W/"weak"', "Mon, 01 Jan 2024 00:00:00 GMT"
    server.cut_after = [300_000, 1, 200_000]
    assert get(server, tmp_path, sha256=SHA).read_bytes() == BODY
    expected = server.etag if validator == "etag" else server.date
    assert [entry[0] for entry in server.log] == [
        None,
        "bytes=300000-",
        "bytes=300001-",
        "bytes=500001-",
    ]
    assert [entry[1] for entry in server.log[1:]] == [expected] * 3
    assert [entry[2] for entry in server.log] == [200, 206, 206, 206]


def test_resumes_in_a_later_call(server, tmp_path):
    server.cut_after = [400_000] + [0] * 10
    with pytest.raises(ConnectionError, match="closed the connection"):
        get(server, tmp_path)
    assert (tmp_path / "data.bin.part").stat().st_size == 400_000
    server.cut_after, server.log = [], []
    assert get(server, tmp_path, sha256=SHA).read_bytes() == BODY
    assert server.log == [("bytes=400000-", '"v1"', 206)]


def test_server_without_ranges_sends_it_all_again(server, tmp_path):
    server.ranges, server.cut_after = False, [300_000, 500_000]
    assert get(server, tmp_path, sha256=SHA).read_bytes() == BODY
    assert [entry[2] for entry in server.log] == [200, 200, 200]


def test_without_validator_never_joins_halves(server, tmp_path):
    server.etag, server.cut_after = None, [300_000]
    assert get(server, tmp_path, sha256=SHA).read_bytes() == BODY
    assert [entry[0] for entry in server.log] == [None, None]


def test_file_that_changes_between_the_halves(server, tmp_path):
    server.cut_after = [400_000] + [0] * 10
    with pytest.raises(ConnectionError):
        get(server, tmp_path)
    server.body, server.etag, server.cut_after = BODY[::-1], '"v2"', []
    assert get(server, tmp_path).read_bytes() == BODY[::-1]


def test_part_is_already_complete(server, tmp_path):
    server.cut_after = [400_000] + [0] * 10
    with pytest.raises(ConnectionError):
        get(server, tmp_path)
    (tmp_path / "data.bin.part").write_bytes(BODY)
    server.cut_after = []
    assert get(server, tmp_path, sha256=SHA).read_bytes() == BODY
    assert server.log[-1][2] == 416


def test_part_longer_than_the_file(server, tmp_path):
    server.cut_after = [400_000] + [0] * 10
    with pytest.raises(ConnectionError):
        get(server, tmp_path)
    (tmp_path / "data.bin.part").write_bytes(BODY + b"more")
    server.cut_after = []
    assert get(server, tmp_path, sha256=SHA).read_bytes() == BODY


def test_chunked_transfer_cut_short(server, tmp_path):
    server.chunked, server.ranges, server.cut_after = True, False, [1]
    assert get(server, tmp_path, sha256=SHA).read_bytes() == BODY


def test_wrong_checksum(server, tmp_path):
    with pytest.raises(DataFormatError, match=f"{SHA}, expected {'0' * 64}"):
        get(server, tmp_path, sha256="0" * 64)
    assert "data.bin" not in leftovers(tmp_path)
    assert "data.bin.part" not in leftovers(tmp_path)
    assert get(server, tmp_path, sha256=SHA).read_bytes() == BODY


def test_file_there_with_wrong_checksum(server, tmp_path):
    (tmp_path / "data.bin").write_bytes(b"old")
    with pytest.raises(DataFormatError, match="expected"):
        get(server, tmp_path, sha256=SHA)


@pytest.mark.parametrize(
    ("status", "error"), [(404, FileNotFoundError), (403, OSError), (503, OSError)]
)
def test_error_answers(server, tmp_path, status, error):
    server.status = status
    with pytest.raises(error, match=rf"data.bin answered {status}.*put it at .*data.bin"):
        get(server, tmp_path)
    assert len(server.log) == (1 if status < 500 else 2)  # a busy server is asked again


def test_offline(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x.zip"
    with pytest.raises(ConnectionError) as caught:
        download(url, tmp_path / "x.zip", pause=0.0)
    message = str(caught.value)
    assert url in message and str(tmp_path / "x.zip") in message and "offline" in message
    assert "\n" not in message


def test_file_urls_and_bad_addresses(tmp_path):
    source = tmp_path / "source.txt"
    source.write_bytes(b"abc")
    copy = download(source.as_uri(), tmp_path / "copy.txt")
    assert copy.read_bytes() == b"abc"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        download((tmp_path / "none.txt").as_uri(), tmp_path / "x", pause=0.0)
    with pytest.raises(ValueError, match="http, https or file"):
        download("ftp://127.0.0.1/x", tmp_path / "x")
    with pytest.raises(ValueError, match="64 hex digits"):
        download(source.as_uri(), tmp_path / "x", sha256="abc")


def test_unwritable_folder_is_not_retried(server, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("longtail.data.download.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        get(server, tmp_path)
    assert len(server.log) == 1


def _download_in_child(url, path, queue):
    queue.put(download(url, path, sha256=SHA, pause=0.0).read_bytes() == BODY)


def test_several_processes_download_once(server, tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    arguments = (server.url, tmp_path / "data.bin", queue)
    children = [context.Process(target=_download_in_child, args=arguments) for _ in range(3)]
    for child in children:
        child.start()
    assert [queue.get(timeout=60) for _ in children] == [True] * 3
    for child in children:
        child.join()
    assert len(server.log) == 1


def test_lock_excludes_threads(tmp_path):
    inside, most = [0], [0]

    def work():
        with locked(tmp_path / "locks" / "a.lock"):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            time.sleep(0.02)
            inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_progress_on_a_terminal(server, tmp_path, capsys, monkeypatch):
    get(server, tmp_path)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    clock = itertools.count(0, 2)  # seconds: work of less than one shows nothing
    monkeypatch.setattr("longtail._progress.time.monotonic", lambda: next(clock))
    download(server.url, tmp_path / "again.bin")
    shown = capsys.readouterr().err
    assert "\x1b[Kdata.bin  100%  0:00 left  1.0 of 1.0 MB" in shown
    assert shown.endswith("\r\x1b[K")  # the line goes away when the work is done


def test_cache_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path / "here"))
    assert cache_dir() == tmp_path / "here"
    monkeypatch.delenv("LONGTAIL_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir() == tmp_path / "longtail"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_dir().name == "longtail" and cache_dir().parent.name == ".cache"


def test_file_sha256(tmp_path):
    (tmp_path / "f").write_bytes(BODY)
    assert file_sha256(tmp_path / "f") == SHA
