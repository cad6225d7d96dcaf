#!/usr/bin/env python3
"""Rate, latency and memory of searches of builds of fetchwell, by turns.

Usage: benches/load/searches.py BINARY [BINARY ...] [--seconds N] [--turns N] [--calls N] [--memory STORE ...]

Each build has a store of 2,000 records of 60 words of 2,000, and is asked for two of these words: over stdio one call after the
other, and hosted by wrk over 16 connections, which uses the same cores. With --memory, one store for each build, as
benches/load/columns.py --folder leaves it: the resident memory of a process after its start, and 45 seconds after 200 searches
and 50 filters, aggregates and sorts in it. Prints Markdown. Needs Debian's wrk for the hosted part.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from columns import Server, questions

WORDS = [f"word{number}" for number in range(2_000)]
HERE = Path(__file__).parent
# Servers that are stopped at the end.
STARTED = []


def search(word_source):
    """Returns the arguments of a search for two words."""
    return {"query": " ".join(word_source.sample(WORDS, 2))}


def import_words(binary, store):
    """Imports 2,000 records of 60 words."""
    words = random.Random(1)
    record = {"stream": "notes"}
    lines = (json.dumps(record | {"key": f"n{number}", "data": {"text": " ".join(words.choices(WORDS, k=60))}}) for number in range(2_000))
    file = store.with_suffix(".ndjson")
    file.write_text("\n".join(lines) + "\n")
    command = [binary, "import", "records", str(file), "--store", str(store), "--connection", "bench"]
    subprocess.run(command, check=True, capture_output=True)


def order(turn, count):
    """Returns the numbers of all builds, each one first by turns."""
    return [(number + turn) % count for number in range(count)]


def status(process, name):
    """Returns a value of the status of a process in MB."""
    line = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


def processor_time(process):
    """Returns the processor time of a process in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Hosted:
    """A fetchwell that serves a store over HTTP."""

    def __init__(self, binary, store, folder):
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--state-dir", "none", "--log", "error", "--store", str(store)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        STARTED.append(self.process)
        started = next((line for line in self.process.stderr if "serves MCP at" in line), None)
        assert started, f"{binary} ended before it served; run it without --log error to see why"
        self.url = "http://" + started.split("://")[1].split("/")[0]
        words = random.Random(2)
        params = ({"name": "search", "arguments": search(words)} for _ in range(2_000))
        calls = ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call} for call in params)
        self.bodies = folder / f"bodies-{self.process.pid}"
        self.bodies.write_text("\n".join(json.dumps(call) for call in calls) + "\n")
        self.tokens = folder / "tokens"
        self.tokens.write_text("none\n")

    def load(self, seconds):
        """Returns the searches a second, and the milliseconds of processor time of each."""
        before = processor_time(self.process.pid)
        command = ["wrk", "-t2", "-c16", f"-d{seconds}s", "-s", "call.lua", self.url, "--", str(self.bodies), str(self.tokens)]
        output = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout
        requests, took, _, _, failed = next(line for line in output.splitlines() if line.startswith("RESULT")).split()[1:]
        assert failed == "0", output
        used = processor_time(self.process.pid) - before
        return int(requests) / float(took), used * 1e3 / int(requests)


def parts(process):
    """Returns the resident memory of a process, and the part of it that is not of files."""
    return f"{status(process, 'VmRSS'):.1f} ({status(process, 'RssAnon'):.1f})"


def measure_memory(binary, store):
    """Prints the memory of a process that reads a large store."""
    server = Server(binary, store)
    STARTED.append(server.process)
    started = parts(server.process.pid)
    asked = [(tool, {"stream": "orders", **call}) for _, tool, call, _ in questions(1_000)]
    values = random.Random(3)
    for number in range(200):
        query = f"customer {values.randint(1, 200)} {values.choice(['open', 'paid', 'sent', 'delivery'])}"
        server.call("search", {"query": query})
        if number % 4 == 0:
            server.call(*asked[number // 4 % len(asked)])
    most = status(server.process.pid, "VmHWM")
    time.sleep(45)
    print(f"| {binary} | {started} | {parts(server.process.pid)} | {most:.1f} |", flush=True)
    stop()


def stop():
    """Stops all servers."""
    while STARTED:
        process = STARTED.pop()
        process.kill()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", nargs="+")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--calls", type=int, default=3_000)
    parser.add_argument("--memory", nargs="+", default=[], help="a store with columns for each build")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stores = [folder / f"{number}.db" for number in range(len(arguments.binaries))]
        for binary, store in zip(arguments.binaries, stores):
            import_words(binary, store)
        print("| build | stdio, p50 / p99 in ms | hosted, a second | processor time of each, ms | resident, MB |\n|---|---|---|---|---|")
        builds = list(zip(arguments.binaries, stores))
        local = [Server(binary, str(store)) for binary, store in builds]
        STARTED.extend(server.process for server in local)
        times = [[] for _ in builds]
        words = random.Random(4)
        for turn in range(arguments.calls):
            call = search(words)
            for number in order(turn, len(builds)):
                times[number].append(local[number].call("search", call)[0])
        stop()
        hosted = [Hosted(binary, store, folder) for binary, store in builds]
        loads = [[] for _ in builds]
        for turn in range(arguments.turns):
            for number in order(turn, len(builds)):
                loads[number].append(hosted[number].load(arguments.seconds))
        for (binary, _), taken, load, server in zip(builds, times, loads, hosted):
            taken.sort()
            latency = f"{statistics.median(taken) * 1e3:.2f} / {taken[len(taken) * 99 // 100 - 1] * 1e3:.2f}"
            rates, used = ", ".join(f"{rate:,.0f}" for rate, _ in load), statistics.median(used for _, used in load)
            print(f"| {binary} | {latency} | {rates} | {used:.2f} | {parts(server.process.pid)} |", flush=True)
        stop()
    if arguments.memory:
        print("\n| build | resident at the start, MB (not of files) | 45 s after the calls | most |\n|---|---|---|---|")
        for binary, store in zip(arguments.binaries, arguments.memory, strict=True):
            measure_memory(binary, store)


if __name__ == "__main__":
    try:
        main()
    finally:
        stop()
