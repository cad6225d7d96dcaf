#!/usr/bin/env python3
"""Runs a session of commands and draws it as docs/images/terminal.svg. With --check, fails if the drawing is not current.

Usage: docs/images/terminal.py BINARY [--check]

The commands run in a new home folder with two notes and a mailbox. Standard library of Python only.
"""

import html
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TARGET = pathlib.Path(__file__).with_name("terminal.svg")

FILES = {
    "notes/budget.md": "# Budget 2026\n\nThe travel budget is 4,200 EUR. An overdue invoice counts against it.\n",
    "notes/garden.md": "# Garden\n\nPlant tomatoes in May.\n",
    "mail.mbox": (
        "From billing@strom.example Fri Jan  2 08:00:00 2026\n"
        "From: Strom <billing@strom.example>\nTo: ann@example.com\nSubject: Overdue invoice\n"
        "Date: Fri, 2 Jan 2026 08:00:00 +0000\nMessage-ID: <m1>\n\n"
        "The December invoice over 61.20 EUR is overdue.\n"
    ),
}

COMMANDS = [
    "fetchwell add ~/notes",
    "fetchwell add ~/mail.mbox",
    "fetchwell search overdue invoice",
    "fetchwell fetch mail/messages:m1",
    "fetchwell client-config claude-code",
]

# The time of the files, so that results have the same date on every run.
MODIFIED = 1_767_600_000

COLUMNS, LINE, CHARACTER, MARGIN, BAR = 96, 19, 7.85, 16, 30


def session(binary):
    """Returns the lines of the session: commands with a prompt, and their output with escape sequences."""
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder).resolve()
        for name, text in FILES.items():
            path = home / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            os.utime(path, (MODIFIED, MODIFIED))
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "CLICOLOR_FORCE": "1", "TZ": "UTC"}
        lines = []
        for command in COMMANDS:
            words = [str(home / word[2:]) if word.startswith("~/") else word for word in command.split()]
            run = subprocess.run(
                [binary, *words[1:]], env=environment, cwd=home, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=120,
            )
            output = run.stdout.replace(str(home), "~").replace(str(binary), "fetchwell")
            lines += [f"\x1b[2m$\x1b[0m \x1b[1m{command}\x1b[0m", *output.rstrip("\n").split("\n"), ""]
        return lines[:-1]


def wrapped(line):
    """Splits a line into rows of at most COLUMNS characters, each a list of (text, class)."""
    rows, row, width, style = [], [], 0, ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            codes = part[2:-1].split(";")
            style = "" if codes in ([""], ["0"]) else {"2": "dim", "1": "bold"}.get(codes[0], "match")
            continue
        while part:
            taken, part = part[: COLUMNS - width], part[COLUMNS - width :]
            row.append((taken, style))
            width += len(taken)
            if part:
                rows.append(row)
                row, width = [], 0
    return [*rows, row]


def draw(lines):
    """Draws lines as SVG."""
    rows = [row for line in lines for row in wrapped(line)]
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
    height = BAR + len(rows) * LINE + MARGIN
    text = []
    for number, row in enumerate(rows, 1):
        spans = "".join(
            f'<tspan class="{style}">{html.escape(part)}</tspan>' if style else html.escape(part) for part, style in row
        )
        if spans:
            text.append(f'<text x="{MARGIN}" y="{BAR + number * LINE - 5}" xml:space="preserve">{spans}</text>')
    title = "A terminal: fetchwell add, search, fetch and client-config with their output"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d8dee9}",
        ".bold{font-weight:600;fill:#fff}.dim{fill:#7b8698}.match{fill:#f2c66d;font-weight:600}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#1d232e"/>',
        *(f'<circle cx="{x}" cy="16" r="5" fill="#3b4554"/>' for x in (20, 36, 52)),
        *text,
        "</svg>\n",
    ])


def main(binary, *options):
    drawing = draw(session(pathlib.Path(binary).resolve()))
    if options == ("--check",):
        if TARGET.read_text() != drawing:
            sys.exit(f"{TARGET.name} is not current: run docs/images/terminal.py {binary}")
    elif options:
        sys.exit(__doc__)
    else:
        TARGET.write_text(drawing)


if len(sys.argv) < 2:
    sys.exit(__doc__)
main(*sys.argv[1:])
