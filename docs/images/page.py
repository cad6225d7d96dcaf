#!/usr/bin/env python3
"""Takes a picture of the search page over the sample data: docs/images/page.png. With --check, fails if the page has changed since.

Usage: docs/images/page.py BINARY [--check]

docs/images/page.sha256 is the digest of the page in the picture, so that a check needs no browser. Taking the picture needs
chromium. Standard library of Python only.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

FOLDER = pathlib.Path(__file__).parent
PICTURE, DIGEST = FOLDER / "page.png", FOLDER / "page.sha256"

QUERY = "/?q=invoice"

CHROMIUM = [
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1040,900",
]


def serve(binary, folder):
    """Starts a server over the sample data, and returns it with its URL."""
    store, state = f"{folder}/demo.db", f"{folder}/state"
    environment = {"HOME": folder, "PATH": os.environ["PATH"]}
    subprocess.run([binary, "demo", "--store", store], env=environment, stdout=subprocess.DEVNULL, check=True)
    arguments = ["serve", "--store", store, "--state-dir", state, "--listen", "127.0.0.1:0"]
    server = subprocess.Popen([binary, *arguments], env=environment, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            return server, found.group()
    sys.exit("the server did not start")


def digest(url):
    """Returns the digest of the page, without the address of the server."""
    request = urllib.request.Request(url + QUERY, headers={"Accept": "text/html"})
    page = urllib.request.urlopen(request, timeout=30).read().decode()
    return hashlib.sha256(page.replace(url, "").encode()).hexdigest() + "\n"


def main(binary, *options):
    if options not in ((), ("--check",)):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        server, url = serve(str(pathlib.Path(binary).resolve()), folder)
        try:
            current = digest(url)
            if not options:
                screenshot = [f"--user-data-dir={folder}/browser", f"--screenshot={PICTURE.resolve()}", url + QUERY]
                subprocess.run([*CHROMIUM, *screenshot], check=True, stderr=subprocess.DEVNULL, timeout=120)
                DIGEST.write_text(current)
            elif DIGEST.read_text() != current:
                sys.exit(f"{PICTURE.name} is not current: run docs/images/page.py {binary}")
        finally:
            server.kill()
            server.wait()


if len(sys.argv) < 2:
    sys.exit(__doc__)
main(*sys.argv[1:])
