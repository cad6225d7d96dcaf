#!/usr/bin/env python3
"""Checks packaging/Containerfile without a container engine.

Usage: packaging/container.py
Checks that each instruction is known, that shell commands parse, and that `cargo` accepts what the file copies of this repository.
"""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "packaging" / "Containerfile"

INSTRUCTIONS = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def instructions() -> list:
    """Returns the instructions as pairs of a name and its arguments."""
    lines = [line for line in FILE.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in joined.splitlines()]


def check_command(text: str) -> None:
    """Checks a command: a list of strings as JSON, or a line for a shell."""
    words = json.loads(text) if text.startswith("[") else ["sh", "-c", text]
    assert words and all(isinstance(word, str) for word in words), text
    if words[0] in {"sh", "bash"} and words[1] == "-c":
        subprocess.run([words[0], "-n", "-c", words[2]], check=True)


def main() -> None:
    found = instructions()
    unknown = {name for name, _ in found} - INSTRUCTIONS
    assert not unknown, f"unknown instructions {unknown}"
    assert found[0][0] == "FROM", "an image comes first"
    shared = [line[1:] for line in (ROOT / "packaging" / "Containerfile.dockerignore").read_text().split() if line[0] == "!"]
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in found:
            if name in {"RUN", "ENTRYPOINT", "CMD"}:
                check_command(arguments)
            elif name == "HEALTHCHECK":
                check_command(arguments.split(" CMD ", 1)[1])
            elif name == "COPY" and not arguments.startswith("--from"):
                *sources, place = arguments.split()
                for source in sources:
                    assert any(source == path or source.startswith(path + "/") for path in shared), f"{source} is ignored"
                    target = pathlib.Path(folder, place, source if place == "./" else "")
                    copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                    copy(ROOT / source, target)
        metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"]
        subprocess.run(metadata, cwd=folder, check=True, stdout=subprocess.DEVNULL)


main()
