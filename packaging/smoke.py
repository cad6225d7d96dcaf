#!/usr/bin/env python3
"""Tests an installed fetchwell: its version, `demo`, an import, and an MCP session over stdio that searches and fetches.

Usage: packaging/smoke.py VERSION COMMAND [ARGUMENT ...]
Every package passes the same test. It runs in a home folder of its own, without the environment of the caller.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading

# Guards against a hang. Nothing depends on them otherwise.
SECONDS = 120


def run(command: list, environment: dict) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
    return done.stdout


class Session:
    """An MCP session with a process. Each line of its output must be one message."""

    def __init__(self, command: list, environment: dict):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.lines: queue.Queue = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.number = 0

    def read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line)

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict) -> dict:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            answer = json.loads(self.lines.get(timeout=SECONDS))
            if answer.get("id") == self.number:
                assert "result" in answer, answer
                return answer["result"]

    def call(self, tool: str, arguments: dict) -> dict:
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"], "both channels have the same data"
        return result["structuredContent"]


def check_numbers(command: list, environment: dict, home: str) -> None:
    """Imports a number of 17 digits. A package is built without the libraries for tests, which change how numbers are parsed."""
    file, store, number = os.path.join(home, "places.json"), os.path.join(home, "places.db"), "31.245270191439438"
    with open(file, "w") as places:
        places.write(f'[{{"id": "p1", "latitude": {number}}}]')
    run([*command, "import", "json", file, "--store", store, "--connection", "c"], environment)
    shown = run([*command, "fetch", "c/places:p1", "--store", store], environment)
    assert number in shown, shown


def main() -> None:
    version, command = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"]}
        shown = run([*command, "--version"], environment).split()
        assert shown == ["fetchwell", version], shown
        store = os.path.join(home, "demo.db")
        assert "search(" in run([*command, "demo", "--store", store], environment)

        check_numbers(command, environment, home)
        session = Session([*command, "serve", "--stdio", "--store", store], environment)
        client = {"name": "smoke", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        server = session.request("initialize", params)["serverInfo"]
        assert (server["name"], server["version"]) == ("fetchwell", version), server
        session.send({"method": "notifications/initialized"})
        tools = [tool["name"] for tool in session.request("tools/list", {})["tools"]]
        assert {"search", "fetch"} <= set(tools), tools
        first = session.call("search", {"query": "invoice"})["results"][0]
        assert "invoice" in session.call("fetch", {"id": first["id"]})["text"].lower()
        # The end of its input ends a server.
        session.process.stdin.close()
        assert session.process.wait(timeout=SECONDS) == 0


main()
