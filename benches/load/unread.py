#!/usr/bin/env python3
"""Measures the memory of a hosted server whose clients do not read.

    benches/load/unread.py BINARY [BINARY ...] [--connections N] [--after SECONDS]

Opens N HTTP/2 connections (default: 200) with 100 streams each and a receive window of 0, and sends a request on each stream: without a
token, for the sign-in page, and with one token for all. Prints for each binary the resident memory before, at its peak, while nothing is
read, and SECONDS (default: 30) after the connections are closed, as Markdown for docs/benchmarks.md. Needs Linux.
"""

import argparse
import hashlib
import pathlib
import socket
import struct
import subprocess
import tempfile
import time

STREAMS = 100
TOKEN = "fwt_" + "t" * 43
SEARCH = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"invoice"}}}'

HEADERS, SETTINGS, DATA = 1, 4, 0
END_STREAM, END_HEADERS = 1, 4


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header_block(headers):
    """Encodes each header as a literal without indexing (RFC 7541, 6.2.2). Names and values are shorter than 127 bytes."""
    pairs = [(name.encode(), value.encode()) for name, value in headers]
    return b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in pairs)


def requests(port, path, token, body):
    """Returns the bytes of a connection with a request on each of its streams."""
    method = "POST" if body else "GET"
    headers = [(":method", method), (":scheme", "http"), (":path", path), (":authority", f"localhost:{port}")]
    headers += [("accept", "application/json, text/event-stream, text/html")]
    headers += [("authorization", f"Bearer {token}")] if token else []
    headers += [("content-type", "application/json")] if body else []
    block = header_block(headers)
    sent = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)), frame(SETTINGS, 1, 0, b"")]
    for stream in range(1, 2 * STREAMS, 2):
        sent.append(frame(HEADERS, END_HEADERS | (0 if body else END_STREAM), stream, block))
        if body:
            sent.append(frame(DATA, END_STREAM, stream, body))
    return b"".join(sent)


def status(process, name):
    lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:"))) / 1024


def start(binary, folder):
    store = folder / "demo.db"
    if not store.exists():
        subprocess.run([binary, "demo", "--store", store], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    port = free_port()
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    etc = folder / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "fetchwell.toml").write_text(
        f'public_url = "http://localhost:{port}"\n[[auth.token]]\nname = "ann"\nsha256 = "{digest}"\nsources = ["store"]\n'
        f'[[source]]\nname = "store"\nstore = "{store}"\n'
    )
    command = [binary, "serve", "--config", etc / "fetchwell.toml", "--listen", f"127.0.0.1:{port}", "--state-dir", folder / "state"]
    process = subprocess.Popen(command, stderr=(folder / "log").open("ab"))
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{binary} does not serve; see {folder / 'log'}")


def settle(process, seconds):
    """Waits until the resident memory has not grown for a second."""
    largest, since, end = 0.0, time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < end and time.monotonic() - since < 1:
        now = status(process, "VmRSS")
        if now > largest + 0.5:
            largest, since = now, time.monotonic()
        time.sleep(0.05)
    return largest


def measure(binary, path, token, body, options):
    with tempfile.TemporaryDirectory() as folder:
        process, port = start(binary, pathlib.Path(folder))
        try:
            time.sleep(1)
            before = status(process, "VmRSS")
            sent = requests(port, path, token, body)
            connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(options.connections)]
            for connection in connections:
                connection.settimeout(10)
                connection.sendall(sent)
            during = settle(process, 20)
            peak = status(process, "VmHWM")
            for connection in connections:
                connection.close()
            time.sleep(options.after)
            return before, peak, during, status(process, "VmRSS")
        finally:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", nargs="+")
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--after", type=int, default=30)
    options = parser.parse_args()
    print(f"{options.connections} HTTP/2 connections with {STREAMS} unread streams each; resident MB.\n")
    print(f"| binary | requests | before | peak | while unread | {options.after} s after |\n|---|---|--:|--:|--:|--:|")
    cases = [
        ("without a token (401)", "/mcp", None, SEARCH),
        ("sign-in page", "/", None, None),
        ("one token, `search`", "/mcp", TOKEN, SEARCH),
    ]
    for what, path, token, body in cases:
        for binary in options.binary:
            sizes = measure(binary, path, token, body, options)
            print(f"| {binary} | {what} | " + " | ".join(f"{size:.0f}" for size in sizes) + " |", flush=True)


main()
