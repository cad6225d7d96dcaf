"""Walks of lists and searches, and fetches of all ids that they print."""

import collections
import json
import random
import subprocess
import threading
import time

from client import Client, in_threads
from cluster import environment

CONNECTION = "cin_{}"
STREAM = "letters"

# One record in this many matches the search.
MATCHES = 50

# Threads that fetch ids.
FETCHERS = 6


def envelope(who, key, number, time):
    """Returns a record as `import records` reads it."""
    word = "copper" if number % MATCHES == 0 else "plain"
    data = {"title": f"Letter {key} of {who}", "n": number, "body": f"A {word} letter, only for {who}."}
    at = f"2026-{1 + time // 2_419_200:02}-{1 + time // 86_400 % 28:02}T{time // 3_600 % 24:02}:{time // 60 % 60:02}:{time % 60:02}Z"
    return json.dumps({"stream": STREAM, "key": key, "data": data, "emitted_at": at}) + "\n"


def write_records(file, who, count):
    """Writes the records that a walk has to find. Their times are even seconds; `Importer` uses the odd ones."""
    with file.open("w") as lines:
        for number in range(count):
            lines.write(envelope(who, f"{who}{number:06}", number, number * 2))


def run_import(binary, store, who, file):
    command = [binary, "import", "records", str(file), "--store", store, "--connection", CONNECTION.format(who)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


class Importer:
    """Imports further records between those of a walk, one file after the other. `with` ends after the current one."""

    def __init__(self, binary, store, folder, count):
        self.binary, self.store, self.file, self.count = binary, store, folder / "more.ndjson", count
        self.imported = set()
        self.ends = threading.Event()
        self.problem = None
        self.first = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            batch = 0
            while not self.ends.is_set():
                numbers = range(batch, self.count, max(self.count // 200, 1))
                with self.file.open("w") as lines:
                    for number in numbers:
                        lines.write(envelope("ann", f"new{number:06}", number, number * 2 + 1))
                run_import(self.binary, self.store, "ann", self.file)
                self.imported.update(numbers)
                self.first.set()
                batch += 1
        except BaseException as problem:
            self.problem = problem
        finally:
            self.first.set()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()
        if self.problem is not None:
            raise self.problem


class Walk:
    """Reads all pages of a list or of a search."""

    def __init__(self, tool, first):
        self.tool, self.first = tool, first
        # Ids with the server that printed each.
        self.ids = []
        self.pages = 0
        self.warnings = set()

    def run(self, port, importer):
        client = Client(port, "ann")
        arguments = dict(self.first)
        while True:
            if random.random() < 0.5:
                # Otherwise walks that take turns could each reach one server only.
                client.get("/health/live")
            page = self.page(client, arguments)
            self.pages += 1
            self.warnings.update(page.get("warnings", []))
            rows = page["results"] if self.tool == "search" else page["records"]
            self.ids.extend((row["id"], client.replica) for row in rows)
            cursor = page.get("next_cursor")
            if cursor is None:
                return
            arguments = self.first | {"cursor": cursor}
            if self.pages == 3:
                # Waits for the first import, so that even a short walk has one in its middle.
                importer.first.wait()

    def page(self, client, arguments):
        """Returns a page. If Redis did not answer the server in time, the call is repeated, as its error or warning says."""
        for _ in range(20):
            page = client.tool(self.tool, **arguments)
            has_cursor = not any("no cursor" in warning for warning in page.get("warnings", []))
            if has_cursor and page.get("error", {}).get("code") != "state_unavailable":
                break
            time.sleep(0.5)
        assert "error" not in page, (self.tool, arguments, page)
        return page

    def check(self, expected):
        """Compares the ids with those that were there from the beginning. Imported ids may be found once."""
        seen = [handle for handle, _ in self.ids]
        repeated = len(seen) - len(set(seen))
        lost = len(expected - set(seen))
        further = len(set(seen) - expected)
        name = f"{self.tool} {json.dumps(self.first)}"
        replicas = len({replica for _, replica in self.ids})
        assert lost == 0 and repeated == 0, f"{name}: {lost} lost, {repeated} repeated, {self.warnings}"
        assert not self.warnings, f"{name}: {self.warnings}"
        # A short walk may reach one server only, by chance.
        assert replicas > 1 or self.pages < 20, f"{name}: {self.pages} pages of one server"
        return f"{name}: {len(expected)} records on {self.pages} pages of {replicas} servers, 0 lost, 0 repeated, {further} of the import"


def walk_all(port, importer, count):
    """Walks a list in both directions and a search, at the same time. Returns the walks."""
    limit = max(10, min(100, count // 100))
    lists = [Walk("query_records", {"stream": STREAM, "limit": limit, "order": order}) for order in ("asc", "desc")]
    walks = [*lists, Walk("search", {"query": "copper", "limit": max(5, limit // 4)})]
    in_threads(lambda part: [walk.run(port, importer) for walk in part], walks, len(walks))
    return walks


def handle(who, key):
    return f"{CONNECTION.format(who)}/{STREAM}:{key}"


def check_walks(walks, count):
    """Prints a line for each walk."""
    for walk in walks:
        step = MATCHES if walk.tool == "search" else 1
        yield walk.check({handle("ann", f"ann{number:06}") for number in range(0, count, step)})


def fetch_elsewhere(replicas, walks):
    """Fetches every printed id from another server than the one that printed it, several at a time. None may fail."""
    printed = {}
    for walk in walks:
        for handle, replica in walk.ids:
            printed.setdefault(handle, replica)
    ports = [replica.port for replica in replicas]
    # Servers that answered, an entry for each id. Appending is safe in threads.
    fetched, failures = [], []

    def fetch(part):
        clients = {port: Client(port, "ann") for port in ports}
        for number, (handle, replica) in enumerate(part):
            others = [port for port in ports if not replica.endswith(f":{port}")]
            port = others[number % len(others)]
            record = clients[port].tool("fetch", id=handle)
            key = handle.rsplit(":", 1)[1]
            if record.get("id") == handle and f"Letter {key} of ann" in record["title"]:
                fetched.append(port)
            else:
                failures.append((handle, replica, port, record))

    in_threads(fetch, list(printed.items()), FETCHERS)
    assert not failures, f"{len(failures)} of {len(printed)} printed ids cannot be fetched: {failures[:3]}"
    assert len(fetched) == len(printed) and set(fetched) == set(ports), collections.Counter(fetched)
    return f"all {len(printed)} printed ids fetched from another server, 0 failures"
