#!/usr/bin/env python3
"""Writes a wheel with an existing binary, in the form of those of maturin, which packs only what it compiles itself.

Usage: packaging/python/wheel.py BINARY SHARE OUT
SHARE has the manual pages and completions. The version and other fields are those of Cargo.toml. The wheel is for this platform.
"""

import base64
import hashlib
import pathlib
import sys
import sysconfig
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from manifest import cargo_package


def metadata(package: dict) -> str:
    fields = [("Metadata-Version", "2.4"), ("Name", package["name"]), ("Version", package["version"]), ("Summary", package["description"]),
              ("Keywords", ",".join(package["keywords"])), ("License-Expression", package["license"]), ("Requires-Python", ">=3.8"),
              ("Description-Content-Type", "text/markdown; charset=UTF-8")]
    return "".join(f"{name}: {value}\n" for name, value in fields) + "\n" + (HERE / "README.md").read_text()


def main() -> None:
    binary, share, out = (pathlib.Path(argument) for argument in sys.argv[1:4])
    package = cargo_package()
    stem = f"{package['name']}-{package['version']}"
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    files = {f"{stem}.data/scripts/{package['name']}": (binary.read_bytes(), 0o755)}
    for path in sorted(path for path in share.rglob("*") if path.is_file()):
        files[f"{stem}.data/data/share/{path.relative_to(share).as_posix()}"] = (path.read_bytes(), 0o644)
    wheel = f"Wheel-Version: 1.0\nGenerator: packaging/python/wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{stem}.dist-info/METADATA"] = (metadata(package).encode(), 0o644)
    files[f"{stem}.dist-info/WHEEL"] = (wheel.encode(), 0o644)
    record = ""
    with zipfile.ZipFile(out / f"{stem}-{tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, (content, mode) in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
            write(archive, name, content, mode)
        name = f"{stem}.dist-info/RECORD"
        write(archive, name, (record + f"{name},,\n").encode(), 0o644)


def write(archive: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (0o100000 | mode) << 16
    archive.writestr(entry, content, compress_type=zipfile.ZIP_DEFLATED, compresslevel=1)


main()
