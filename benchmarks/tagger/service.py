"""The service under load: latency at a steady rate, throughput in batches, memory, odd requests.

    python benchmarks/tagger/service.py MODEL TEXTS.jsonl[.gz] [--seconds 30] [--rate 50] [--soak 0]
        [--malformed 1000]

Starts ``longtail serve MODEL`` on a free port of this machine and prints, with the machine and the
command:

1. single texts at ``--rate`` requests a second, open loop (a request is sent when it is due, and
   its latency counts from then, so that a slow answer is not hidden by waiting): p50 and p99;
2. texts a second in requests of 256;
3. with ``--soak S``: resident memory a minute after the start and S seconds later;
4. ``--malformed`` requests that make no sense, drawn at random: no 5xx, and the server lives.
"""

from __future__ import annotations

import argparse
import http.client
import json
import platform
import queue
import random
import re
import subprocess
import sys
import threading
import time
from itertools import islice

import numpy as np

from longtail.data.tables import iter_table

CLIENTS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description="The service under load.")
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--soak", type=float, default=0)
    parser.add_argument("--malformed", type=int, default=1000)
    options = parser.parse_args()
    rows = islice(iter_table(options.texts, label_column=None), 5000)
    texts = [record.text for record in rows]
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    print("python", *sys.argv)
    server = subprocess.Popen(
        [sys.executable, "-m", "longtail", "serve", options.model, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port = int(re.search(r":(\d+) \(", server.stderr.readline())[1])
        ask_until_ready(port)
        latency(port, texts, options.rate, options.seconds)
        throughput(port, texts, min(options.seconds / 2, 20))
        if options.soak:
            soak(port, server.pid, texts, options.rate, options.soak)
        if options.malformed:
            malformed(port, options.malformed)
        assert server.poll() is None, "the server has died"
    finally:
        server.terminate()
        server.wait()


def ask_until_ready(port: int) -> None:
    for _ in range(200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/health")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not answer")


def post(connection: http.client.HTTPConnection, body: bytes) -> int:
    connection.request("POST", "/predict", body, {"content-type": "application/json"})
    response = connection.getresponse()
    response.read()
    return response.status


def steadily(port: int, bodies: list[bytes], rate: float, seconds: float) -> np.ndarray:
    """Seconds from when each request was due to its answer."""
    due: queue.Queue[tuple[float, bytes] | None] = queue.Queue()
    found: list[float] = []

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while (job := due.get()) is not None:
            when, body = job
            if post(connection, body) != 200:
                raise SystemExit("a request was refused")
            found.append(time.perf_counter() - when)

    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in clients:
        thread.start()
    began = time.perf_counter()
    for i in range(int(rate * seconds)):
        when = began + i / rate
        time.sleep(max(0.0, when - time.perf_counter()))
        due.put((when, bodies[i % len(bodies)]))
    for _ in clients:
        due.put(None)
    for thread in clients:
        thread.join()
    return np.array(found)


def latency(port: int, texts: list[str], rate: float, seconds: float) -> None:
    bodies = [json.dumps({"texts": [text], "k": 5}).encode() for text in texts]
    steadily(port, bodies, rate, 3)  # warms up
    ms = 1000 * steadily(port, bodies, rate, seconds)
    p50, p90, p99 = np.percentile(ms, [50, 90, 99])
    print(
        f"single texts, {rate:g} requests/s, {len(ms):,} requests: "
        f"p50 {p50:.2f} ms, p90 {p90:.2f} ms, p99 {p99:.2f} ms"
    )


def throughput(port: int, texts: list[str], seconds: float) -> None:
    bodies = [
        json.dumps({"texts": texts[i : i + 256], "k": 5}).encode()
        for i in range(0, len(texts) - 256, 256)
    ]
    connection = http.client.HTTPConnection("127.0.0.1", port)
    post(connection, bodies[0])
    began, n = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        post(connection, bodies[n % len(bodies)])
        n += 1
    print(f"batches of 256: {256 * n / (time.perf_counter() - began):,.0f} texts/s")


def soak(port: int, pid: int, texts: list[str], rate: float, seconds: float) -> None:
    bodies = [json.dumps({"texts": [text], "k": 5}).encode() for text in texts]
    steadily(port, bodies, rate, 60)
    first = resident(pid)
    steadily(port, bodies, rate, seconds)
    last = resident(pid)
    print(
        f"soak of {seconds:g} s after the first minute: {first:.1f} MB, then {last:.1f} MB "
        f"({100 * (last / first - 1):+.2f} %)"
    )


def resident(pid: int) -> float:
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def malformed(port: int, n: int) -> None:
    rng = random.Random(0)
    good = {"texts": ["a text"], "k": 5, "threshold": 0.1, "tail": 0.5, "explain": True}
    values = [
        None, True, -1, 0, 10**40, 1e308, "", "x" * 1000, "\ud800", [], {}, [[]], [None], {"": 1},
        ["\x00"], [{"a": "b"}], [{"a": None}], "NaN", [1.5], {"texts": {}}, ["a"] * 2000,
    ]  # fmt: skip
    counts: dict[int, int] = {}
    for i in range(n):
        kind = rng.randrange(5)
        question = dict(good)
        question[rng.choice([*good, "include", "exclude", "other"])] = rng.choice(values)
        body = json.dumps(question).encode()
        method, path = "POST", "/predict"
        if kind == 1:
            cut = rng.randrange(len(body))
            body = body[:cut] + bytes([rng.randrange(256)]) + body[cut + rng.randrange(3) :]
        elif kind == 2:
            body = rng.randbytes(rng.randrange(200))
        elif kind == 3:
            method = rng.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
        elif kind == 4:
            odd = "".join(rng.choice("abc%/.?=&0_-~") for _ in range(rng.randrange(30)))
            path = rng.choice(["/labels?q=", "/labels?limit=", "/", "/static/", "/report/"]) + odd
            method = "GET"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request(method, path, body, {"content-type": "application/json"})
        response = connection.getresponse()
        response.read()
        connection.close()
        counts[response.status] = counts.get(response.status, 0) + 1
        if response.status >= 500:
            print(f"request {i} got {response.status}: {method} {path} {body!r:.300}")
    shown = ", ".join(f"{status}: {count:,}" for status, count in sorted(counts.items()))
    print(f"{n:,} odd requests: {shown}")


if __name__ == "__main__":
    main()
