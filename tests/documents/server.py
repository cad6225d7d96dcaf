"""The built binary: commands, a server over HTTP, and calls of its tools."""

import http.client
import json
import os
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def run(binary, *arguments):
    """Runs a command and returns its standard output. Fails if the command fails."""
    command = [str(binary), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def environment():
    """Returns an environment without settings of the user."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("FETCHWELL_", "MCP_"))}
    return own | {"XDG_CONFIG_HOME": "/no/such/folder", "NO_COLOR": "1"}


def import_folder(binary, store, project, folder, *options):
    """Creates a project and imports a folder."""
    run(binary, "project", "create", project, "--store", store)
    return run(binary, "import", "docs", folder, "--project", project, "--store", store, *options)


class Server:
    """`fetchwell serve` on a free port. `with` stops it."""

    def __init__(self, binary, *arguments):
        self.state = tempfile.TemporaryDirectory()
        command = [str(binary), "serve", "--listen", "127.0.0.1:0", "--state-dir", self.state.name, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
        )
        self.log = []
        for line in self.process.stderr:
            self.log.append(line)
            if line.startswith("fetchwell serves MCP at "):
                self.address = urlsplit(line.split()[4]).netloc
                break
        else:
            raise AssertionError(f"the server did not start:\n{''.join(self.log)}")
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.state.cleanup()

    def request(self, method, target, body=None, headers=None):
        """Sends a request. Returns the status, the headers by their names in lower case, and the body."""
        connection = http.client.HTTPConnection(self.address, timeout=120)
        try:
            connection.request(method, target, body, headers or {})
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()

    def post(self, target, body, content_type="application/json"):
        """Sends a body, JSON unless it is bytes."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", target, sent, {**HEADERS, "content-type": content_type})

    def rpc(self, method, params):
        """Returns the result of a request to `/mcp/docs`."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        status, _, body = self.post("/mcp/docs", message)
        assert status == 200, (status, body)
        return json.loads(body)["result"]

    def tool(self, name, **arguments):
        """Returns the payload of a successful tool call."""
        result = self.rpc("tools/call", {"name": name, "arguments": arguments})
        assert not result.get("isError"), result
        return result["structuredContent"]


def text_of(path):
    """Returns the text of a file next to this one."""
    return Path(__file__).with_name(path).read_text()
