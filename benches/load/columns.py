#!/usr/bin/env python3
"""Latency of filters, counts, groups and sorts of builds of fetchwell beside SQLite's JSON functions and DuckDB.

Usage: benches/load/columns.py BINARY [BINARY ...] [--records N] [--calls N] [--folder FOLDER] [--postgres URL]

N records of orders, half of them in the stream that is asked, are imported by each build into a store of its own, or into the
database at URL, which is emptied for each. Then all builds answer the same calls by turns over MCP (stdio), SQLite and DuckDB
(`pip install duckdb`; left out without it) the same questions over the same half. Answers that differ between builds are
counted. Prints Markdown: p50 and p99 in ms.
"""

import argparse
import json
import random
import sqlite3
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

STATUSES = ["open", "paid", "sent", "returned", "cancelled"]


def orders(count):
    """Yields orders with the stream of each."""
    randomness = random.Random(1)
    for number in range(count):
        month, day = randomness.randint(1, 12), randomness.randint(1, 28)
        data = {
            "number": number,
            "reference": f"R-{number:07}",
            "customer": f"customer {randomness.randint(1, 200)}",
            "status": randomness.choice(STATUSES),
            "amount": randomness.randint(100, 999_999) / 100,
            "ordered_at": f"2025-{month:02}-{day:02}T{randomness.randint(0, 23):02}:15:00Z",
            "note": "delivery to the usual place, please ring twice",
        }
        yield ("orders" if number % 2 == 0 else "returns"), number, data


class Server:
    """A fetchwell that answers over stdio."""

    def __init__(self, binary, store):
        command = [binary, "serve", "--stdio", "--state-dir", "none", "--log", "error", "--store", store]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def call(self, tool, arguments):
        """Returns the seconds of a call and its answer."""
        params = {"name": tool, "arguments": arguments}
        started = time.perf_counter()
        result = self.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})["result"]
        took = time.perf_counter() - started
        assert not result.get("isError"), result
        return took, result["structuredContent"]


def questions(count):
    """Yields the name of a question, its call, and its SQL over a table `orders` of columns."""
    rare = random.Random(2).randrange(0, count, 2)
    value = "json_extract(data, '$.{}')".format
    yield "a filter that one record passes", "query_records", {"filter": {"reference": f"R-{rare:07}"}}, (
        "SELECT * FROM orders WHERE {reference} = 'R-%07d' LIMIT 25" % rare
    )
    yield "exact count with a filter of a fifth", "query_records", {"filter": {"status": "paid"}, "count": "exact", "limit": 1}, (
        "SELECT count(*) FROM orders WHERE {status} = 'paid'"
    )
    yield "exact count with a range", "query_records", {"filter": {"amount": {"gte": 9000}}, "count": "exact", "limit": 1}, (
        "SELECT count(*) FROM orders WHERE {amount} >= 9000"
    )
    yield "count by group", "aggregate", {"metric": "count", "group_by": "status"}, "SELECT {status}, count(*) FROM orders GROUP BY 1"
    yield "sum by group", "aggregate", {"metric": "sum", "field": "amount", "group_by": "customer"}, (
        "SELECT {customer}, sum({amount}) FROM orders GROUP BY 1"
    )
    yield "average by group", "aggregate", {"metric": "avg", "field": "amount", "group_by": "status"}, (
        "SELECT {status}, avg({amount}) FROM orders GROUP BY 1"
    )
    yield "sum of all", "aggregate", {"metric": "sum", "field": "amount"}, "SELECT sum({amount}) FROM orders"
    yield "distinct values", "aggregate", {"metric": "count_distinct", "field": "customer"}, "SELECT count(DISTINCT {customer}) FROM orders"
    yield "count by month", "aggregate", {"metric": "count", "group_by_time": "ordered_at", "granularity": "month"}, (
        "SELECT substr({ordered_at}, 1, 7), count(*) FROM orders GROUP BY 1"
    )
    yield "first page by a number, largest first", "query_records", {"sort": "-amount"}, (
        "SELECT * FROM orders ORDER BY {amount} DESC LIMIT 25"
    )
    yield "filter and sort", "query_records", {"filter": {"status": "open"}, "sort": "-amount", "limit": 3}, (
        "SELECT * FROM orders WHERE {status} = 'open' ORDER BY {amount} DESC LIMIT 3"
    )


class Fields(dict):
    """Names of columns by the names of fields."""

    def __init__(self, form):
        super().__init__()
        self.form = form

    def __missing__(self, name):
        return self.form.format(name)


def databases(file, folder):
    """Returns functions that answer a question in SQLite and DuckDB, by the name of each."""
    known = {}
    sqlite = sqlite3.connect(folder / "orders.sqlite")
    sqlite.execute("CREATE TABLE orders (data TEXT)")
    with file.open() as lines:
        rows = (json.loads(line) for line in lines)
        sqlite.executemany("INSERT INTO orders VALUES (?)", ((json.dumps(row["data"]),) for row in rows if row["stream"] == "orders"))
    sqlite.commit()
    columns = Fields("json_extract(data, '$.{}')")
    known["SQLite"] = lambda sql: sqlite.execute(sql.format_map(columns)).fetchall()
    try:
        import duckdb
    except ImportError:
        return known
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE orders AS SELECT data.* FROM read_json('{file}') WHERE stream = 'orders'")
    connection.execute("ALTER TABLE orders ALTER ordered_at TYPE VARCHAR")
    names = Fields("{}")
    known["DuckDB"] = lambda sql: connection.execute(sql.format_map(names)).fetchall()
    return known


def import_all(binary, file, store):
    if store.startswith("postgres"):
        subprocess.run([binary, "remove", "connection", "shop", "--store", store, "--yes"], capture_output=True)
    started = time.perf_counter()
    command = [binary, "import", "records", str(file), "--store", store, "--connection", "shop"]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def shown(seconds):
    ordered = sorted(seconds)
    return f"{statistics.median(ordered) * 1e3:.1f} / {ordered[max(0, int(len(ordered) * 0.99) - 1)] * 1e3:.1f}"


def size_of(store):
    return sum(path.stat().st_size for path in Path(store).parent.rglob("*") if path.is_file() and Path(store).name in str(path))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", nargs="+")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--folder", help="keep the stores in this folder, and use those that are there")
    parser.add_argument("--postgres", help="database of the last build instead of a file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(arguments.folder or name)
        folder.mkdir(exist_ok=True)
        file = folder / f"orders-{arguments.records}.ndjson"
        if not file.exists():
            with file.open("w") as lines:
                for stream, number, data in orders(arguments.records):
                    lines.write(json.dumps({"stream": stream, "key": f"o{number}", "data": data}) + "\n")
        servers, names = [], []
        for at, binary in enumerate(arguments.binaries):
            is_last = at + 1 == len(arguments.binaries)
            store = arguments.postgres if arguments.postgres and is_last else str(folder / f"{Path(binary).name}-{arguments.records}.db")
            if store == arguments.postgres or not Path(store).exists():
                took = import_all(binary, file, store)
                size = f", {size_of(store) / 1e6:.0f} MB" if Path(store).exists() else ""
                print(f"{Path(binary).name}: imported {arguments.records / took:,.0f} records a second{size}")
            servers.append(Server(binary, store))
            names.append(Path(binary).name + (" (PostgreSQL)" if store == arguments.postgres else ""))
        others = databases(file, Path(name))
        print("\n| question | " + " | ".join([*names, *others]) + " | answers |")
        print("|---" * (len(names) + len(others) + 2) + "|")
        for question, tool, call, sql in questions(arguments.records):
            times = {key: [] for key in [*range(len(servers)), *others]}
            answers = set()
            for turn in range(arguments.calls):
                for at in range(len(servers)):
                    number = (at + turn) % len(servers)
                    took, answer = servers[number].call(tool, {"stream": "orders", **call})
                    times[number].append(took)
                    answer.pop("next_cursor", None)
                    answers.add(json.dumps(answer))
                for other, ask in others.items():
                    started = time.perf_counter()
                    ask(sql)
                    times[other].append(time.perf_counter() - started)
            equal = "equal" if len(answers) == 1 else f"{len(answers)} different"
            print(f"| {question} | " + " | ".join(shown(taken) for taken in times.values()) + f" | {equal} |", flush=True)
        for server in servers:
            server.process.kill()


if __name__ == "__main__":
    main()
