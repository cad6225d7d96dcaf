"""State that the servers share: ids of a record server, sign-ins, rate limits; and two grants that see nothing of each other."""

import collections
import json
import random
import threading
import time

from authority import HITS
from client import Client, in_threads, page_path, new_address
from cluster import RATE_LIMIT
from urllib.parse import parse_qs, urlsplit
from walks import CONNECTION, STREAM, handle

# Number of sign-ins. Each is completed twice at every server, all at the same time.
SIGN_INS = 20

# Searches of the record server with ids of its own.
SEARCHES = 20

# Concurrent calls of each grant.
WORKERS = 3


def own_ids(replicas):
    """Fetches ids that have no address from each server that did not print them."""
    ports = [replica.port for replica in replicas]
    clients = [Client(port, "carol") for port in ports]
    fetched = 0
    for number in range(SEARCHES):
        found = clients[number % len(ports)].call("search", query=f"w{number}", limit=HITS)
        ids = [hit["id"] for hit in found["results"]]
        assert len(ids) == HITS, found
        for other in range(1, len(ports)):
            for printed in ids:
                document = clients[(number + other) % len(ports)].call("fetch", id=printed)
                assert f"text of {printed.removeprefix('own ')}" in json.dumps(document), document
                fetched += 1
    return f"{fetched} fetches of ids of a record server's own from other servers"


def sign_ins_once(port, replicas, authority):
    """Completes each sign-in at all servers at the same time. Exactly one of them begins a session."""
    path = page_path(handle("ann", "ann000000"))
    for _ in range(SIGN_INS):
        status, headers, body = Client(port).get(path)
        assert status in (302, 303), (status, body)
        asked = parse_qs(urlsplit(headers["location"]).query)
        cookie = headers["set-cookie"].split(";")[0]
        back = f"/records/-/callback?code=c&state={asked['state'][0]}"
        answers = collections.Counter()

        def complete(part):
            for port in part:
                status, headers, body = Client(port).get(back, {"cookie": cookie})
                sessions = [line for line in headers.get_all("set-cookie", []) if "session" in line.split("=")[0]]
                answers[status, bool(sessions)] += 1
                assert status == 303 or b"used already" in body, (status, body)

        ports = [replica.port for replica in replicas] * 2
        in_threads(complete, ports, len(ports))
        assert answers == {(303, True): 1, (400, False): len(ports) - 1}, answers
    assert authority.exchanges == SIGN_INS, authority.exchanges
    return f"{SIGN_INS} sign-ins completed {len(replicas) * 2} times each: {SIGN_INS} sessions"


def rate_limit(port):
    """Sends more requests from one address than the limit allows, through the proxy."""
    statuses = collections.Counter()
    address = new_address()
    started = time.monotonic()

    def send(part):
        client = Client(port)
        client.address, client.sent = address, -len(part)
        for _ in part:
            # A request without a token is counted before it is refused.
            status, _, _ = client.get("/v1/streams")
            assert status in (401, 429), status
            statuses[status] += 1

    sent = RATE_LIMIT * 3 // 2
    in_threads(send, list(range(sent)), 6)
    refilled = RATE_LIMIT * (time.monotonic() - started) / 3_600
    passed = statuses[401]
    assert abs(passed - RATE_LIMIT) <= RATE_LIMIT * 0.02 + refilled, statuses
    return f"{passed} of {sent} requests passed, {(passed - RATE_LIMIT) / RATE_LIMIT:+.2%} of the limit of {RATE_LIMIT}"


class Grant:
    """Calls of one grant, with the ids and cursors that the other tries to use."""

    def __init__(self, who, other, count):
        self.who, self.other, self.count = who, other, count
        self.handles, self.cursors = collections.deque(maxlen=100), collections.deque(maxlen=100)
        self.answers = self.refusals = 0
        self.lock = threading.Lock()

    def call(self, client, tool, **arguments):
        payload = client.call(tool, **arguments)
        with self.lock:
            self.answers += 1
        if payload.get("next_cursor"):
            self.cursors.append((tool, payload["next_cursor"]))
        shown = json.dumps({name: value for name, value in payload.items() if name not in ("next_cursor", "next_changes_since")})
        assert f"of {self.other}" not in shown and f"for {self.other}" not in shown, (tool, arguments, shown)
        assert CONNECTION.format(self.other) not in shown, (tool, arguments, shown)
        return payload

    def once(self, client, of_other):
        found = self.call(client, "search", query=random.choice(["copper", "letter", "plain"]), limit=10)
        if found.get("next_cursor"):
            self.call(client, "search", cursor=found["next_cursor"])
        hit = random.choice(found["results"])["id"]
        self.handles.append(hit)
        assert self.call(client, "fetch", id=hit)["id"] == hit
        page = self.call(client, "query_records", stream=STREAM, limit=25)
        self.call(client, "query_records", cursor=page["next_cursor"])
        counted = self.call(client, "aggregate", stream=STREAM, metric="count")
        assert counted["value"] == self.count, counted
        self.call(client, "schema")
        if of_other.handles:
            self.refused(client, "fetch", {"id": of_other.handles[-1]}, ("connection_not_found", "not_found"))
        if of_other.cursors:
            tool, cursor = of_other.cursors[-1]
            self.refused(client, tool, {"cursor": cursor}, ("invalid_cursor",))

    def refused(self, client, tool, arguments, codes):
        payload = client.tool(tool, **arguments)
        assert payload.get("error", {}).get("code") in codes, (tool, arguments, payload)
        assert f"of {self.other}" not in json.dumps(payload) and f"for {self.other}" not in json.dumps(payload), payload
        with self.lock:
            self.refusals += 1


def leaks(port, counts, seconds):
    """Calls tools as two grants at the same time. Each sees only its own records."""
    ann, bob = Grant("ann", "bob", counts["ann"]), Grant("bob", "ann", counts["bob"])
    until = time.monotonic() + seconds

    def work(part):
        for grant, other in part:
            client = Client(port, grant.who)
            while time.monotonic() < until:
                grant.once(client, other)

    pairs = [(ann, bob), (bob, ann)] * WORKERS
    in_threads(work, pairs, len(pairs))
    assert min(ann.answers, bob.answers, ann.refusals, bob.refusals) > 0
    return f"{ann.answers + bob.answers} answers of two grants in {seconds} s, {ann.refusals + bob.refusals} refusals, 0 leaks"
