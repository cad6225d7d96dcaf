"""Records replies of real MCP servers in fixtures/mcp-servers, over stdio.

Usage: tests/mcp/run target/mcp/fastmcp/bin/python tests/mcp/record.py [NAME ...]

Each file holds the request, the name of the client and the JSON-RPC message of the server as it was sent. Only
lists of tools are cut: to the tools that search and read. A recording of basic-memory has new identifiers and
timestamps each time, because the server assigns them.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "mcp-servers"
# Sessions are opened with `initialize` in the first revision, and have no start in the second: each request names the client.
REVISION = "2025-11-25"
STATELESS = "2026-07-28"
OPENAI = "openai-mcp"
OTHER = "fetchwell"

INITIALIZE = {"protocolVersion": REVISION, "capabilities": {}}


def tool(name, **arguments):
    return ("tools/call", {"name": name, "arguments": arguments})


def notes(query, **arguments):
    return tool("search_notes", query=query, output_format="json", **arguments)


def note(identifier, **arguments):
    return tool("read_note", identifier=identifier, output_format="json", **arguments)


# File, client, and request. Requests of one client are sent in this order in one session. Files named stateless-* are
# recorded with the revision that has no sessions.
SAMPLE = [
    ("initialize", OTHER, ("initialize", INITIALIZE)),
    ("tools", OTHER, ("tools/list", {})),
    ("search", OTHER, tool("search", query="lemon velvet")),
    ("search-empty", OTHER, tool("search", query="qqqqzzzz")),
    ("fetch", OTHER, tool("fetch", id="3")),
    ("fetch-unknown", OTHER, tool("fetch", id="no-such-order")),
    ("search-wrong-argument", OTHER, tool("search", q="lemon")),
    ("unknown-tool", OTHER, tool("search_orders", query="lemon")),
    ("stateless-discover", OTHER, ("server/discover", {})),
    ("stateless-search", OTHER, tool("search", query="lemon party")),
]

MEMORY = [
    ("initialize", OTHER, ("initialize", INITIALIZE)),
    ("tools", OTHER, ("tools/list", {})),
    ("search-refused", OTHER, tool("search", query="invoice")),
    ("fetch-refused", OTHER, tool("fetch", id="main/home/boiler")),
    ("search-notes", OTHER, notes("invoice")),
    ("search-notes-page-1", OTHER, notes("trip", page=1, page_size=1)),
    ("search-notes-page-2", OTHER, notes("trip", page=2, page_size=1)),
    ("search-notes-page-beyond", OTHER, notes("trip", page=9, page_size=1)),
    ("search-notes-empty", OTHER, notes("qqqqzzzz")),
    ("search-notes-text", OTHER, tool("search_notes", query="invoice")),
    ("search-notes-text-empty", OTHER, tool("search_notes", query="qqqqzzzz")),
    ("search-notes-malformed", OTHER, notes('"invoice AND (')),
    ("search-notes-wrong-argument", OTHER, notes("trip", cursor="x")),
    ("read-note", OTHER, note("main/home/boiler")),
    ("read-note-title", OTHER, note("Boiler maintenance")),
    ("read-note-dotted", OTHER, note("home/water-leak.2026")),
    ("read-note-text", OTHER, tool("read_note", identifier="main/trips/sao-paulo")),
    ("read-note-unknown", OTHER, note("main/home/no-such-note")),
    ("read-note-unknown-text", OTHER, tool("read_note", identifier="main/home/no-such-note")),
    ("read-note-similar", OTHER, note("Boiler")),
    ("read-note-outside", OTHER, note("../../etc/passwd")),
    ("search", OPENAI, tool("search", query="invoice")),
    ("search-empty", OPENAI, tool("search", query="qqqqzzzz")),
    ("fetch", OPENAI, tool("fetch", id="main/home/boiler")),
    ("fetch-dotted", OPENAI, tool("fetch", id="home/water-leak.2026")),
    ("fetch-unknown", OPENAI, tool("fetch", id="main/home/no-such-note")),
    ("stateless-discover", OPENAI, ("server/discover", {})),
    ("stateless-search", OPENAI, tool("search", query="invoice")),
]

SERVERS = {
    "openai-sample": (SAMPLE, {"search", "fetch"}),
    "basic-memory": (MEMORY, {"search", "fetch", "search_notes", "read_note"}),
}


class Session:
    """One process of a server, with the messages of one client."""

    def __init__(self, command, environment, client, stateless):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.number = 0
        info = {"name": client, "version": "1"}
        self.more = {}
        if stateless:
            prefix = "io.modelcontextprotocol"
            described = {"protocolVersion": STATELESS, "clientInfo": info, "clientCapabilities": {}}
            self.more = {"_meta": {f"{prefix}/{name}": value for name, value in described.items()}}
            return
        self.opening = self.ask("initialize", {**INITIALIZE, "clientInfo": info})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """Sends a request, and returns the response. Notifications in between are dropped."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": {**params, **self.more}})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.number:
                return message
        self.errors.seek(0)
        raise SystemExit(f"the server closed its output: {self.errors.read().decode()}")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def record(name, environment):
    requests, relevant = SERVERS[name]
    folder = FIXTURES / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    sessions = {}
    for file, client, (method, params) in requests:
        key = (client, file.startswith("stateless-"))
        if key not in sessions:
            sessions[key] = Session([ROOT / "tests" / "mcp" / "serve", name], environment, *key)
        session = sessions[key]
        response = session.opening if method == "initialize" else session.ask(method, params)
        if method == "tools/list":
            listed = response["result"]["tools"]
            response["result"]["tools"] = [entry for entry in listed if entry["name"] in relevant]
        request = {"client": client, "method": method, "params": params}
        text = json.dumps({**request, "response": response}, ensure_ascii=False, indent=1)
        for private in [str(ROOT), environment["FETCHWELL_TEST_MCP_HOME"], str(pathlib.Path.home())]:
            if private in text:
                raise SystemExit(f"{name}/{file}: the reply has the path {private}")
        (folder / f"{file}.json").write_text(text + "\n", "utf-8")
        print(f"{name}/{file}.json: {len(text)} bytes")
    for session in sessions.values():
        session.close()


def main(names):
    for name in names or SERVERS:
        with tempfile.TemporaryDirectory() as home:
            record(name, {**os.environ, "FETCHWELL_TEST_MCP_HOME": home})


main(sys.argv[1:])
