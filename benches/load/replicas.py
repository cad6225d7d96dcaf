#!/usr/bin/env python3
"""Measures calls a second of one server and of three, with one PostgreSQL, one Redis and nginx in front of them.

Usage: FETCHWELL_TEST_POSTGRES_VERSIONS=18 tests/postgres/run tests/redis/run benches/load/replicas.py BINARY [SECONDS]
  SECONDS  duration of each row [default: 20]

Needs wrk. Prints Markdown for docs/benchmarks.md. Databases, proxy, load and servers use the same processors.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests" / "replicas"))
sys.dont_write_bytecode = True

from client import Client, tool_message  # noqa: E402
from cluster import TOKENS, Replica, create_database, free_port, start_all, start_proxy, wait_for  # noqa: E402
from walks import run_import, write_records  # noqa: E402

CALLER = "ann"
RECORDS = 20_000
CONNECTIONS = 16


def configuration(store, state):
    """Returns the configuration of the servers: one caller, and no limit of its rate."""
    digest = hashlib.sha256(TOKENS[CALLER].encode()).hexdigest()
    return f"""state = "{state}"
[[auth.token]]
name = "{CALLER}"
sha256 = "{digest}"
sources = ["letters"]
[[source]]
name = "letters"
store = "{store}"
"""


def questions(port):
    """Returns the messages of each kind of call. Makes some of the searches, for the ids that they print."""
    client = Client(port, CALLER)
    words = [{"query": f"copper {number:06}"} for number in range(0, RECORDS, 50)]
    found = [client.call("search", **arguments)["results"] for arguments in words[:20]]
    client.close()
    return {
        "fetch": [tool_message("fetch", {"id": result["id"]}) for results in found for result in results],
        "search": [tool_message("search", arguments) for arguments in words],
        "query_records": [tool_message("query_records", {"stream": "letters"})],
    }


def cpu_seconds(processes):
    """Returns the processor time of some processes."""
    fields = [Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split() for process in processes]
    return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")


def resident(process):
    """Returns the resident memory of a process in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def load(port, folder, seconds):
    """Runs wrk. Returns calls, seconds, p50 and p99 in ms, and calls without an answer."""
    command = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "10s", "-s", "call.lua"]
    command += [f"http://127.0.0.1:{port}", "--", str(folder / "bodies"), str(folder / "tokens")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE)
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    return [float(field) for field in line.split()[1:]]


def main(binary, seconds, folder):
    store = create_database("load")
    write_records(folder / "letters.ndjson", CALLER, RECORDS)
    run_import(binary, store, CALLER, folder / "letters.ndjson")
    config = folder / "fetchwell.toml"
    config.write_text(configuration(store, os.environ["FETCHWELL_TEST_REDIS"]))
    (folder / "tokens").write_text(TOKENS[CALLER] + "\n")

    replicas = [Replica(binary, str(config), folder, f"replica-{number}") for number in range(3)]
    try:
        start_all(replicas)
        print(f"{CONNECTIONS} connections, {RECORDS:,} records, {os.cpu_count()} processors\n")
        print("| call | servers | calls a second | p50 / p99, ms | servers' processor time a call, ms | resident memory of each, MB | failed |")
        print("|---|---|---|---|---|---|---|")
        asked = None
        for number in (1, 3):
            behind = replicas[:number]
            inner = folder / f"proxy-{number}"
            inner.mkdir()
            inner.chmod(0o755)
            port = free_port()
            proxy = start_proxy(inner, port, behind)
            try:
                wait_for(port, proxy)
                asked = asked or questions(port)
                measure(port, behind, folder, seconds, asked)
            finally:
                proxy.terminate()
                proxy.wait()
    finally:
        for replica in replicas:
            if replica.process is not None:
                replica.kill()


def measure(port, replicas, folder, seconds, asked):
    processes = [replica.process.pid for replica in replicas]
    for name, bodies in asked.items():
        (folder / "bodies").write_text("".join(f"{line}\n" for line in bodies))
        load(port, folder, 2)
        before = cpu_seconds(processes)
        calls, took, p50, p99, failed = load(port, folder, seconds)
        own = (cpu_seconds(processes) - before) / calls * 1e3
        memory = ", ".join(f"{resident(process):.0f}" for process in processes)
        print(f"| `{name}` | {len(replicas)} | {calls / took:,.0f} | {p50:.1f} / {p99:.1f} | {own:.2f} | {memory} | {failed:.0f} |", flush=True)


with tempfile.TemporaryDirectory() as temporary:
    # nginx runs its workers as another user.
    os.chmod(temporary, 0o755)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20, Path(temporary))
