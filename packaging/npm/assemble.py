#!/usr/bin/env python3
"""Assembles the npm packages: `fetchwell` with the launcher, and one with the binary of this platform.

Usage: packaging/npm/assemble.py BINARY SHARE OUT
SHARE has the manual pages and completions. The version and the descriptions are those of Cargo.toml.
"""

import json
import pathlib
import platform
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from manifest import cargo_package, registry_name

HERE = pathlib.Path(__file__).resolve().parent

# Names of platforms as Node.js has them, with the values of `os`, `cpu` and `libc` of their packages.
PLATFORMS = {
    "linux-x64": {"os": ["linux"], "cpu": ["x64"], "libc": ["glibc"]},
    "linux-arm64": {"os": ["linux"], "cpu": ["arm64"], "libc": ["glibc"]},
    "darwin-x64": {"os": ["darwin"], "cpu": ["x64"]},
    "darwin-arm64": {"os": ["darwin"], "cpu": ["arm64"]},
    "win32-x64": {"os": ["win32"], "cpu": ["x64"]},
}


def this_platform() -> str:
    system = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}[platform.system()]
    machine = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]
    return f"{system}-{machine}"


def write(folder: pathlib.Path, manifest: dict) -> None:
    (folder / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")


def main() -> None:
    binary, share, out = (pathlib.Path(argument) for argument in sys.argv[1:4])
    package = cargo_package()
    shared = {"version": package["version"], "license": package["license"]}
    name = this_platform()

    main_package = out / "fetchwell"
    (main_package / "bin").mkdir(parents=True)
    shutil.copy(HERE / "launcher.js", main_package / "bin" / "fetchwell.js")
    shutil.copy(HERE.parent / "python" / "README.md", main_package / "README.md")
    shutil.copytree(share / "man" / "man1", main_package / "man")
    write(main_package, {
        "name": "fetchwell",
        **shared,
        "description": package["description"],
        "keywords": package["keywords"],
        "mcpName": registry_name(),
        "bin": {"fetchwell": "bin/fetchwell.js"},
        "man": ["man/fetchwell.1"],
        "engines": {"node": ">=18"},
        "optionalDependencies": {f"@fetchwell/{other}": package["version"] for other in PLATFORMS},
    })

    binary_package = out / name
    (binary_package / "bin").mkdir(parents=True)
    program = "fetchwell.exe" if name.startswith("win32") else "fetchwell"
    shutil.copy(binary, binary_package / "bin" / program)
    (binary_package / "bin" / program).chmod(0o755)
    write(binary_package, {
        "name": f"@fetchwell/{name}",
        **shared,
        "description": f"The binary of fetchwell for {name}",
        **PLATFORMS[name],
    })


main()
