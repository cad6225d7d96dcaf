"""The fields of Cargo.toml that packages have, so that the version has one place."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cargo_package() -> dict:
    """Returns the package as cargo reads it."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    return next(package for package in metadata["packages"] if package["name"] == "fetchwell")


def registry_name() -> str:
    """Returns the name of the server in the MCP registry."""
    return json.loads((ROOT / "packaging" / "registry" / "server.json").read_text())["name"]
