"""The service under abuse: floods of explanations, hostile bodies, silent connections, a soak.

    python benchmarks/tagger/abuse.py MODEL TEXTS.jsonl[.gz] [--seconds 60] [--bodies 3]
        [--silent 2000] [--soak 20000] [--reloads 20]

Starts ``longtail serve`` on a copy of MODEL and prints the machine, the command, and a table with
the bar that each number is held against:

1. single texts at 20 requests a second while nothing else happens, and while three clients send the
   worst explanations that are taken, one after the other without a pause, some of them hanging up
   at once: the 99th percentiles, their ratio, and what resident memory grows by;
2. the bodies of 8 MB of ``hostile_bodies.py``, ``--bodies`` times each, one after the other, to the
   service and, where the model can be cut by labels, to one of two shards: the longest time that
   ``/health`` takes meanwhile, and what resident memory grows by;
3. ``--silent`` connections that say nothing, each opened again once it is closed: how long a single
   request takes on a connection of its own;
4. ``--soak`` single requests, while the model is saved anew ``--reloads`` times: resident memory in
   the second tenth and in the last, the median of 50 looks each, since it goes up and down by some
   megabytes with every reload.

The clients are processes of their own on the same machine; 0 leaves a part out. Exit code 1 where a
bar is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import random
import re
import resource
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from hostile_bodies import hostile_bodies, hostile_rows
from service import Service, Table, single, steadily

import longtail as lt
from longtail.data.tables import iter_table
from longtail.linear.remote_shard import MODEL_HEADER
from longtail.serve.explaining import LEAST, MOST_PAIRS
from longtail.tagger.sharding import shard_mark, shard_tagger
from machine import print_machine

RATE = 20.0
SIZE = 8_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description="The service under abuse.")
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--bodies", type=int, default=3)
    parser.add_argument("--silent", type=int, default=2000)
    parser.add_argument("--soak", type=int, default=20_000)
    parser.add_argument("--reloads", type=int, default=20)
    options = parser.parse_args()
    rows = islice(iter_table(options.texts, label_column=None), 2000)
    texts = [record.text for record in rows]
    print_machine()
    with tempfile.TemporaryDirectory() as home:
        served = str(Path(home) / "model")
        shutil.copytree(options.model, served)
        service = Service(served)
        table = Table()
        try:
            if options.seconds:
                flood(service, table, texts, options.seconds)
            if options.bodies:
                requests = [(path, body, {}) for path, body in hostile_bodies(SIZE).values()]
                beside(service, table, "the service", requests * options.bodies)
                shard_bodies(served, table, Path(home), options.bodies)
            if options.silent:
                silence(service, table, texts, options.silent)
            if options.soak:
                soak(service, table, texts, options.soak, options.reloads, served)
            alive = service.process.poll() is None and "ok" in service.get("/health")
            table.add("the server lives", "yes" if alive else "no", "yes", alive)
        finally:
            service.process.terminate()
            service.process.wait()
    return 1 if table.missed else 0


def worst(texts: list[str], labels: list[str]) -> list[tuple[str, bytes]]:
    """Paths and bodies of requests that are just within the bounds."""
    words = " ".join(texts).split()
    out = []
    for k in (10, 50, MOST_PAIRS // LEAST):
        text = " ".join(words[: int(0.8 * MOST_PAIRS / k)])
        out.append(("/predict", json.dumps({"texts": [text], "k": k, "explain": True}).encode()))
    many = [" ".join(words[i : i + 80]) for i in range(0, 1280, 80)]
    out.append(("/predict", json.dumps({"texts": many, "k": 6, "explain": True}).encode()))
    long = " ".join(words[: int(0.8 * MOST_PAIRS)])
    out += [("/explain", json.dumps({"text": long, "label": label}).encode()) for label in labels]
    return out


def explain_for_ever(port: int, requests: list[tuple[str, bytes]], seed: int, counts: Any) -> None:
    """A client that asks for the worst, and hangs up every fourth time."""
    rng = random.Random(seed)
    while True:
        path, body = rng.choice(requests)
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as client:
            client.settimeout(60)
            client.sendall(head.encode() + body)
            if rng.random() < 0.25:
                time.sleep(0.02)
                continue
            answer = client.recv(64)
            while client.recv(1 << 16):
                pass
            counts[0 if b" 200 " in answer else 1] += 1


def flood(service: Service, table: Table, texts: list[str], seconds: float) -> None:
    bodies = single(texts)
    steadily(service, bodies, RATE, 3)
    idle = np.percentile(1000 * steadily(service, bodies, RATE, max(10.0, seconds / 3)), [50, 99])
    labels = json.loads(service.get("/labels?limit=3"))["labels"]
    requests = worst(texts, [item["label"] for item in labels])
    before, top = service.resident_mb(), 0.0
    counts = multiprocessing.Array("q", 2)
    clients = [
        multiprocessing.Process(
            target=explain_for_ever, args=(service.port, requests, i, counts), daemon=True
        )
        for i in range(3)
    ]
    stop = threading.Event()

    def watch() -> None:
        nonlocal top
        while not stop.wait(0.2):
            top = max(top, service.resident_mb())

    watching = threading.Thread(target=watch)
    watching.start()
    for client in clients:
        client.start()
    try:
        busy = np.percentile(1000 * steadily(service, bodies, RATE, seconds), [50, 99])
    finally:
        for client in clients:
            client.terminate()
        stop.set()
        watching.join()
    shown = f"p50 {idle[0]:.1f} ms, p99 {idle[1]:.1f} ms"
    table.add(f"single texts, {RATE:g}/s, nothing else", shown)
    what = f"the same, while 3 clients had {counts[0]:,} explained in {seconds:g} s"
    table.add(what, f"p50 {busy[0]:.1f} ms, p99 {busy[1]:.1f} ms")
    ratio = busy[1] / idle[1]
    table.add("ratio of the p99", f"{ratio:.2f}", "5", ratio <= 5)
    table.add("memory growth", f"{top - before:.0f} MB", "200 MB", top - before <= 200)
    if counts[1]:
        table.add("explanations not answered with 200", f"{counts[1]:,}")


def shard_bodies(model: str, table: Table, home: Path, times: int) -> None:
    tagger = lt.load(model)
    try:
        _, shards = shard_tagger(tagger, 2)
    except (TypeError, ValueError):  # no linear model, or a small one
        return
    shards[0].save(home / "shard")
    headers = {MODEL_HEADER: shard_mark(shards[0]).model}
    rows = hostile_rows(SIZE, shards[0].n_features_in_)
    service = Service(str(home / "shard"))
    try:
        beside(
            service, table, "a shard", [("/rank", row, headers) for row in rows.values()] * times
        )
    finally:
        service.process.terminate()
        service.process.wait()


def beside(
    service: Service, table: Table, what: str, requests: list[tuple[str, bytes, dict[str, str]]]
) -> None:
    """Send requests from a process of its own, and ask for ``/health`` all the while."""
    before, top, waits = service.resident_mb(), 0.0, []
    answers: Any = multiprocessing.Queue()
    client = multiprocessing.Process(
        target=send_all, args=(service.port, requests, answers), daemon=True
    )
    client.start()
    while client.is_alive():
        began = time.perf_counter()
        service.get("/health")
        waits.append(1000 * (time.perf_counter() - began))
        top = max(top, service.resident_mb())
        time.sleep(0.005)
    counts = answers.get(timeout=10)
    shown = ", ".join(f"{status}: {n}" for status, n in sorted(counts.items()))
    bad = sum(n for status, n in counts.items() if status != 503 and status >= 500)
    table.add(f"{len(requests)} bodies of up to 8 MB to {what}", shown, "no 500", not bad)
    name = f"/health beside them, {len(waits):,} times: p99, most"
    value = f"{np.percentile(waits, 99):.0f} ms, {max(waits):.0f} ms"
    table.add(name, value, "250 ms", max(waits) <= 250)
    table.add("memory growth", f"{top - before:.0f} MB", "300 MB", top - before <= 300)


def send_all(port: int, requests: list[tuple[str, bytes, dict[str, str]]], answers: Any) -> None:
    counts: Counter[int] = Counter()
    for path, body, headers in requests:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        kind = {"content-type": "application/json", **headers}
        connection.request("POST", path, body, kind)
        response = connection.getresponse()
        response.read()
        connection.close()
        counts[response.status] += 1
    answers.put(counts)


def silence(service: Service, table: Table, texts: list[str], n: int) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    stop = threading.Event()
    silent: list[socket.socket] = []

    def keep_open() -> None:
        while not stop.is_set():
            for i in range(n):
                gone = i < len(silent) and _is_closed(silent[i])
                if gone or i >= len(silent):
                    with contextlib.suppress(OSError):
                        client = socket.create_connection(("127.0.0.1", service.port), timeout=5)
                        client.setblocking(False)
                        time.sleep(0.001)
                        if gone:
                            silent[i].close()
                            silent[i] = client
                        else:
                            silent.append(client)
            stop.wait(1.0)

    opening = threading.Thread(target=keep_open)
    opening.start()
    while len(silent) < n and opening.is_alive():
        time.sleep(0.1)
    taken = []
    for body in single(texts[:200]):
        began = time.perf_counter()
        connection = service.connect()
        connection.request("POST", "/predict", body, {"content-type": "application/json"})
        if connection.getresponse().status == 200:
            taken.append(1000 * (time.perf_counter() - began))
        connection.close()
        time.sleep(0.02)
    stop.set()
    opening.join()
    for client in silent:
        client.close()
    most = max(taken) if len(taken) == 200 else float("inf")
    shown = f"median {np.median(taken):.1f} ms, p99 {np.percentile(taken, 99):.1f} ms, "
    shown += f"most {most:.1f} ms"
    table.add(f"200 requests beside {n:,} silent connections", shown, "100 ms", most <= 100)


def _is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def soak(
    service: Service, table: Table, texts: list[str], n: int, reloads: int, served: str
) -> None:
    bodies = single(texts)
    connection = service.connect()
    headers = {"content-type": "application/json"}
    model, every, failed = lt.load(served), max(1, n // (reloads + 1)), 0
    resident: list[float] = []
    for i in range(n):
        connection.request("POST", "/predict", bodies[i % len(bodies)], headers)
        response = connection.getresponse()
        response.read()
        failed += response.status != 200
        if i % every == every - 1 and reloads:
            reloads -= 1
            model.save(served, overwrite=True)
            taken = int(re.findall(r"reloads_total (\d+)", service.get("/metrics"))[0])
            while int(re.findall(r"reloads_total (\d+)", service.get("/metrics"))[0]) == taken:
                time.sleep(0.1)
        if i % max(1, n // 500) == 0:
            resident.append(service.resident_mb())
    tenth = len(resident) // 10
    first, last = np.median(resident[tenth : 2 * tenth]), np.median(resident[-tenth:])
    done = int(re.findall(r"reloads_total (\d+)", service.get("/metrics"))[0])
    growth = 100 * (last / first - 1)
    shown = f"{first:.1f} MB, then {last:.1f} MB ({growth:+.2f} %)"
    what = f"resident memory, {n:,} requests and {done} reloads"
    table.add(what, shown, "2 %", growth <= 2)
    table.add("requests of them that failed", str(failed), "0", failed == 0)


if __name__ == "__main__":
    sys.exit(main())
