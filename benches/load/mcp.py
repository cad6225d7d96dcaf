#!/usr/bin/env python3
"""Latency of an MCP server as a source beside the same server called directly, and the start with servers that do not answer.

Usage: benches/load/mcp.py BINARY [--calls N]

One fetchwell serves a store of 2,000 records over HTTP; another one has it as its only source. Both are called by turns over
one connection each, `search` with a different query each time and `fetch` of different records. Then `serve --stdio` is
started with no source but a store, and with ten MCP servers that never answer beside it, by turns. Prints Markdown.
"""

import argparse
import http.client
import json
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

WORDS = [f"word{number}" for number in range(2_000)]


class Server:
    """A fetchwell that serves HTTP."""

    def __init__(self, binary, *arguments):
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--state-dir", "none", "--log", "error", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        started = next((line for line in self.process.stderr if "serves MCP at" in line), None)
        if started is None:
            raise SystemExit(f"{binary} ended before it served; run it without --log error to see why")
        self.address = started.split("://")[1].split("/")[0]
        self.connection = http.client.HTTPConnection(self.address, timeout=30)
        self.number = 0

    def call(self, tool, arguments):
        """Returns the seconds of a call and its result."""
        self.number += 1
        body = json.dumps(
            {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        )
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        started = time.perf_counter()
        self.connection.request("POST", "/mcp", body, headers)
        answer = self.connection.getresponse().read().decode()
        took = time.perf_counter() - started
        if answer.startswith(("event:", "data:", ":")):
            answer = next(line[5:] for line in answer.splitlines() if line.startswith("data:") and "{" in line)
        return took, json.loads(answer)["result"]


def start_time(binary, config):
    """Returns the seconds from the start of `serve --stdio` to the answer to `initialize`."""
    command = [binary, "serve", "--stdio", "--state-dir", "none", "--config", config]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
    }
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    took = time.perf_counter() - started
    process.stdin.close()
    process.wait()
    return took


def shown(seconds):
    ordered = sorted(seconds)
    return f"{statistics.median(ordered) * 1e3:.2f} | {ordered[int(len(ordered) * 0.99) - 1] * 1e3:.2f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--calls", type=int, default=500)
    arguments = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = folder / "records.ndjson"
        with records.open("w") as file:
            for number in range(2_000):
                data = {"title": f"Note {number}", "body": " ".join(random.choices(WORDS, k=60))}
                file.write(json.dumps({"stream": "notes", "key": f"n{number}", "data": data}) + "\n")
        store = str(folder / "store.db")
        command = [arguments.binary, "import", "records", str(records), "--store", store, "--connection", "c"]
        subprocess.run(command, check=True, capture_output=True)
        direct = Server(arguments.binary, "--store", store)
        config = folder / "fetchwell.toml"
        config.write_text(f'[[source]]\nname = "c"\nmcp = "http://{direct.address}/mcp"\n')
        through = Server(arguments.binary, "--config", str(config))
        print("| call | directly, p50 ms | p99 | as a source, p50 ms | p99 | difference of p50 |\n|---|---|---|---|---|---|")
        calls = {
            "search": lambda number: {"query": " ".join(random.choices(WORDS, k=2))},
            "fetch": lambda number: {"id": f"c/notes:n{number}"},
        }
        for tool, make in calls.items():
            times = {direct: [], through: []}
            for number in range(arguments.calls):
                asked = make(number)
                for server in (direct, through) if number % 2 else (through, direct):
                    own = dict(asked)
                    if tool == "fetch" and server is through:
                        own["id"] = f"c/items/c%2Fnotes%3An{number}"
                    took, result = server.call(tool, own)
                    assert not result.get("isError"), result
                    times[server].append(took)
            difference = statistics.median(times[through]) - statistics.median(times[direct])
            print(f"| `{tool}` | {shown(times[direct])} | {shown(times[through])} | {difference * 1e3:+.2f} ms |")
        for server in (direct, through):
            server.process.terminate()
        plain, silent = folder / "plain.toml", folder / "silent.toml"
        own = f'[[source]]\nname = "c"\nstore = "{store}"\n'
        servers = [f'[[source]]\nname = "s{number}"\ncommand = ["sleep", "600"]\n' for number in range(10)]
        plain.write_text(own)
        silent.write_text(own + "".join(servers))
        starts = {str(plain): [], str(silent): []}
        for turn in range(40):
            for config in starts if turn % 2 else reversed(list(starts)):
                starts[config].append(start_time(arguments.binary, config))
        print(f"\nStart to `initialize`, p50 | p99 in ms: a store {shown(starts[str(plain)])}; and ten silent servers {shown(starts[str(silent)])}")


if __name__ == "__main__":
    main()
