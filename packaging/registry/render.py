#!/usr/bin/env python3
"""Writes server.json for the MCP registry with the version of Cargo.toml, and checks it.

Usage: packaging/registry/render.py OUT
The checks are the rules of the schema of 2025-12-11 that concern this file, and those of the registry on names and versions. They
are written here by hand: the schema is not downloaded, and the registry itself was not asked.
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from manifest import cargo_package

HERE = pathlib.Path(__file__).resolve().parent

SERVER_KEYS = {"$schema", "name", "title", "description", "version", "packages", "repository", "websiteUrl"}
PACKAGE_KEYS = {"registryType", "registryBaseUrl", "identifier", "version", "fileSha256", "runtimeHint", "transport",
                "runtimeArguments", "packageArguments", "environmentVariables"}


def check(server: dict, version: str) -> None:
    assert set(server) <= SERVER_KEYS, f"unknown keys {set(server) - SERVER_KEYS}"
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"]) and 3 <= len(server["name"]) <= 200
    assert 1 <= len(server["description"]) <= 100, f"a description of {len(server['description'])} characters"
    assert 1 <= len(server["title"]) <= 100
    assert server["version"] == version and re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", version)
    assert server["packages"], "no packages"
    for package in server["packages"]:
        assert set(package) <= PACKAGE_KEYS, f"unknown keys {set(package) - PACKAGE_KEYS}"
        assert package["registryType"] in {"npm", "pypi"} and package["identifier"]
        assert package["version"] == version, "packages have the version of the server"
        assert package["transport"] == {"type": "stdio"}
        for argument in package["packageArguments"]:
            assert argument["type"] == "positional" and ("value" in argument or "valueHint" in argument)
        for variable in package["environmentVariables"]:
            assert variable["name"] and variable["format"] in {"string", "number", "boolean", "filepath"}
    # Both registries prove the owner of a package by this name.
    assert f"mcp-name: {server['name']}" in (HERE.parent / "python" / "README.md").read_text()


def main() -> None:
    version = cargo_package()["version"]
    server = json.loads((HERE / "server.json").read_text().replace("VERSION", version))
    check(server, version)
    pathlib.Path(sys.argv[1]).write_text(json.dumps(server, indent=2) + "\n")


main()
