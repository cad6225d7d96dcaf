"""Runs all checks against three servers. Usage: driver.py BINARY; tests/replicas/run starts the databases."""

import os
import sys
import tempfile
import time
from pathlib import Path

import checks
import client
import walks
from authority import Authority
from cluster import Cluster, Killer, create_database, free_port

# Number of records of the second caller.
BOBS = 300


def number(name, default):
    return int(os.environ.get(f"FETCHWELL_REPLICAS_{name}", default))


def passed(started, line):
    print(f"PASS {time.monotonic() - started:6.1f} s  {line}", flush=True)


def main(binary, folder):
    started = time.monotonic()
    count, seconds = number("RECORDS", 5_000), number("SECONDS", 5)
    stores = {name: create_database(f"replicas_{name}") for name in ("ann", "bob")}
    for name, records in (("ann", count), ("bob", BOBS)):
        file = folder / f"{name}.ndjson"
        walks.write_records(file, name, records)
        walks.run_import(binary, stores[name], name, file)
    passed(started, f"{count} and {BOBS} records imported")

    port = free_port()
    authority = Authority(f"http://localhost:{port}")
    cluster = Cluster(binary, folder, stores, os.environ["FETCHWELL_TEST_REDIS"], authority, port)
    with cluster:
        try:
            with Killer(cluster), walks.Importer(binary, stores["ann"], folder, count) as importer:
                walked = walks.walk_all(port, importer, count)
            for line in walks.check_walks(walked, count):
                passed(started, line)
            passed(started, f"{cluster.kills} times a server was killed, {len(importer.imported)} records imported meanwhile")
            passed(started, walks.fetch_elsewhere(cluster.replicas, walked))
            passed(started, checks.own_ids(cluster.replicas))
            passed(started, checks.sign_ins_once(port, cluster.replicas, authority))
            passed(started, checks.rate_limit(port))
            counts = {"ann": count + len(importer.imported), "bob": BOBS}
            kills = cluster.kills
            with Killer(cluster):
                leaks = checks.leaks(port, counts, seconds)
            passed(started, f"{leaks}, {cluster.kills - kills} times a server was killed")
            log = cluster.log()
            assert "panicked" not in log and "internal error" not in log, log
            passed(started, f"{client.retries} requests sent again after a connection broke")
        except BaseException:
            print(cluster.log()[-20_000:], file=sys.stderr)
            raise


with tempfile.TemporaryDirectory() as temporary:
    # nginx runs its workers as another user.
    os.chmod(temporary, 0o755)
    main(sys.argv[1], Path(temporary))
