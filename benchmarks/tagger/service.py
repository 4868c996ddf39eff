"""The service under load: latency at a steady rate, throughput in batches, memory, odd requests.

    python benchmarks/tagger/service.py MODEL TEXTS.jsonl[.gz] [--seconds 60] [--rate 50]
        [--soak 600] [--odd 10000] [--schemathesis /path/to/schemathesis]

Starts ``longtail serve MODEL`` on a free port of this machine and prints the machine, the command,
and a table with the bar that each number is held against:

1. single texts at ``--rate`` requests a second, open loop (a request is sent when it is due, and
   its latency counts from then, so that a slow answer is not hidden by waiting): p50, p90, p99, and
   the server's processor time per request, which does not depend on what else the machine does;
2. texts a second in requests of 256;
3. with ``--soak S``: resident memory a minute after the start and S seconds later, at that rate;
4. ``--odd`` requests that make no sense (``odd_requests.py``), and with ``--schemathesis`` those
   that it derives from the contract (from an environment of its own): no 5xx, and the server lives.

Exit code 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from odd_requests import send_odd_requests

from longtail.data.tables import iter_table
from machine import print_machine

CLIENTS = 8


@dataclass
class Table:
    """Rows of what was measured, the number, its bar, and whether it holds."""

    missed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        print("\n| measured | value | bar |\n|---|---:|---:|", flush=True)

    def add(self, what: str, value: str, bar: str = "", holds: bool = True) -> None:
        if not holds:
            self.missed.append(what)
        print(f"| {what} | {value} | {bar if holds else f'**{bar}, missed**'} |", flush=True)


class Service:
    """A running server."""

    def __init__(self, model: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "longtail", "serve", model, "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r":(\d+) \(", line)
        if not found:
            raise SystemExit(line + self.process.stderr.read())
        self.port = int(found[1])
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        for _ in range(300):
            try:
                self.get("/health")
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the server does not answer")

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path: str) -> str:
        connection = self.connect()
        connection.request("GET", path)
        body = connection.getresponse().read().decode()
        connection.close()
        return body

    def answered(self) -> tuple[int, int]:
        """Requests so far, and how many of them got a 5xx."""
        found = re.findall(r'requests_total\{.*status="(\d)xx"\} (\d+)', self.get("/metrics"))
        return sum(int(n) for _, n in found), sum(int(n) for s, n in found if s == "5")

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description="The service under load.")
    parser.add_argument("model")
    parser.add_argument("texts")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--soak", type=float, default=0)
    parser.add_argument("--odd", type=int, default=10_000)
    parser.add_argument("--schemathesis", help="the program, in an environment of its own")
    options = parser.parse_args()
    rows = islice(iter_table(options.texts, label_column=None), 5000)
    texts = [record.text for record in rows]
    print_machine()
    service = Service(options.model)
    table = Table()
    try:
        latency(service, table, texts, options.rate, options.seconds)
        throughput(service, table, texts, min(options.seconds / 2, 20))
        if options.soak:
            soak(service, table, texts, options.rate, options.soak)
        if options.odd:
            counts = send_odd_requests(service.port, options.odd)
            shown = ", ".join(f"{status}: {count:,}" for status, count in sorted(counts.items()))
            bad = sum(count for status, count in counts.items() if status.startswith("5"))
            table.add(f"{options.odd:,} odd requests", shown, "no 5xx", not bad)
        if options.schemathesis:
            contract(service, table, options.schemathesis)
        alive = service.process.poll() is None and "ok" in service.get("/health")
        table.add("the server lives", "yes" if alive else "no", "yes", alive)
    finally:
        service.process.terminate()
        service.process.wait()
    return 1 if table.missed else 0


def post(connection: http.client.HTTPConnection, body: bytes) -> None:
    connection.request("POST", "/predict", body, {"content-type": "application/json"})
    response = connection.getresponse()
    response.read()
    if response.status != 200:
        raise SystemExit(f"a request was refused: {response.status}")


def steadily(service: Service, bodies: list[bytes], rate: float, seconds: float) -> np.ndarray:
    """Seconds from when each request was due to its answer."""
    due: queue.Queue[tuple[float, bytes] | None] = queue.Queue()
    found: list[float] = []

    def client() -> None:
        connection = service.connect()
        while (job := due.get()) is not None:
            when, body = job
            post(connection, body)
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
    if len(found) != int(rate * seconds):
        raise SystemExit("a client has given up")
    return np.array(found)


def single(texts: list[str]) -> list[bytes]:
    return [json.dumps({"texts": [text], "k": 5}).encode() for text in texts]


def latency(service: Service, table: Table, texts: list[str], rate: float, seconds: float) -> None:
    bodies = single(texts)
    steadily(service, bodies, rate, 3)  # warms up
    before = service.cpu_seconds()
    ms = 1000 * steadily(service, bodies, rate, seconds)
    cpu = 1000 * (service.cpu_seconds() - before) / len(ms)
    p50, p90, p99 = np.percentile(ms, [50, 90, 99])
    table.add(
        f"single texts, {rate:g}/s, {len(ms):,} requests: p50", f"{p50:.2f} ms", "3 ms", p50 < 3
    )
    table.add("p90", f"{p90:.2f} ms")
    table.add("p99", f"{p99:.2f} ms", "15 ms", p99 < 15)
    table.add("processor time of the server per request", f"{cpu:.2f} ms")


def throughput(service: Service, table: Table, texts: list[str], seconds: float) -> None:
    bodies = [
        json.dumps({"texts": texts[i : i + 256], "k": 5}).encode()
        for i in range(0, len(texts) - 255, 256)
    ]
    connection = service.connect()
    post(connection, bodies[0])
    before, began, n = service.cpu_seconds(), time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        post(connection, bodies[n % len(bodies)])
        n += 1
    rate = 256 * n / (time.perf_counter() - began)
    cpu = 1000 * (service.cpu_seconds() - before) / (256 * n)
    table.add("batches of 256", f"{rate:,.0f} texts/s", "1,000 texts/s", rate >= 1000)
    table.add("processor time of the server per text of a batch", f"{cpu:.2f} ms")


def soak(service: Service, table: Table, texts: list[str], rate: float, seconds: float) -> None:
    bodies = single(texts)
    steadily(service, bodies, rate, 60)
    first = service.resident_mb()
    steadily(service, bodies, rate, seconds)
    last = service.resident_mb()
    growth = 100 * (last / first - 1)
    value = f"{first:.1f} MB, then {last:.1f} MB ({growth:+.2f} %)"
    table.add(f"resident memory after a minute, and {seconds:g} s later", value, "2 %", growth <= 2)


def contract(service: Service, table: Table, program: str) -> None:
    """Requests that schemathesis makes from the contract; the server itself counts them."""
    before, bad_before = service.answered()
    address = f"http://127.0.0.1:{service.port}/openapi.json"
    how = ["--seed", "1", "--max-examples", "1000", "--continue-on-failure"]
    how += ["--checks", "not_a_server_error"]
    done = subprocess.run([program, "run", address, *how], capture_output=True, text=True)
    after, bad_after = service.answered()
    bad = bad_after - bad_before
    holds = not bad and done.returncode == 0
    table.add(f"schemathesis, {after - before:,} requests", f"{bad} with 5xx", "no 5xx", holds)
    if not holds:
        print(done.stdout[-3000:])


if __name__ == "__main__":
    sys.exit(main())
