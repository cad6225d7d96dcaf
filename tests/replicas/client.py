"""A client of the servers, which sends a request again when its connection breaks."""

import http.client
import itertools
import json
import random
import threading
import time
from urllib.parse import quote

from cluster import RATE_LIMIT, TOKENS

_addresses = itertools.count(1)
_lock = threading.Lock()
retries = 0


def new_address():
    """Returns a client address that was not used before."""
    with _lock:
        number = next(_addresses)
    return f"203.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def tool_message(name, arguments):
    """Returns the message of a tool call."""
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})


class Client:
    """One caller, through the proxy or at one server. Used by one thread."""

    def __init__(self, port, caller=None):
        self.port, self.caller = port, caller
        self.connection = None
        self.sent = RATE_LIMIT
        # Server that answered last.
        self.replica = None

    def request(self, method, target, body=None, headers=None):
        """Sends a request. Returns the status, the headers and the body."""
        global retries
        sent = {"host": f"localhost:{self.port}"} | (headers or {})
        if self.caller:
            sent["authorization"] = f"Bearer {TOKENS[self.caller]}"
        for attempt in range(50):
            # Another address before the rate limit of this one is used up.
            if self.sent >= RATE_LIMIT // 2:
                self.address, self.sent = new_address(), 0
            self.sent += 1
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
                self.connection.request(method, target, body, sent | {"x-forwarded-for": self.address})
                response = self.connection.getresponse()
                read = response.read()
            except (OSError, http.client.HTTPException):
                self.close()
            else:
                self.replica = (response.getheader("x-replica") or f"127.0.0.1:{self.port}").split(", ")[-1]
                if response.status not in (502, 504) or response.getheader("x-request-id"):
                    return response.status, response.headers, read
            with _lock:
                retries += 1
            time.sleep(0.1 + random.random() * 0.1)
        raise AssertionError(f"no answer to {method} {target}")

    def tool(self, name, **arguments):
        """Returns the payload of a tool call, which may be an error."""
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        status, _, body = self.request("POST", "/mcp", tool_message(name, arguments).encode(), headers)
        assert status == 200, (name, arguments, status, body)
        return json.loads(body)["result"]["structuredContent"]

    def call(self, name, **arguments):
        """Returns the payload of a successful tool call."""
        payload = self.tool(name, **arguments)
        assert "error" not in payload, (name, arguments, payload)
        return payload

    def get(self, target, headers=None):
        return self.request("GET", target, None, headers)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def page_path(handle):
    """Returns the path of a record's page."""
    return "/records/" + quote(handle, safe="/:")


def in_threads(work, items, threads):
    """Runs `work(items)` for each of several parts of a list, each in its thread. Fails if one fails."""
    problems = []

    def run(part):
        try:
            work(part)
        except BaseException as problem:
            problems.append(problem)

    running = [threading.Thread(target=run, args=(items[number::threads],)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if problems:
        raise problems[0]
