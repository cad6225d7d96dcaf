#!/usr/bin/env python3
"""Searches and reads real files: the text files of the crates in Cargo's registry folder.

    corpus.py BINARY REGISTRY

* The contract's example finds its document first among 1,000 files, Markdown before other kinds of text.
* `get_document` returns 2,000 files byte for byte, also with CRLF, a byte order mark, and 5 MB.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

from server import Server, import_folder

EXAMPLE_FILES = 1000
"""Files besides the example."""

READ_FILES = 2000

MAX_FILE_BYTES = 256 * 1024

LARGE_BYTES = 5 * 1024 * 1024

MAX_PART_BYTES = 48_000
"""Maximum size of the payload of a tool."""

QUESTION = "how does authentication work"

EXAMPLE = """# Authentication Guide

Authentication is handled via JWT tokens. A client signs in once, receives an access token that is valid for 15 minutes, and sends it in the
header `Authorization: Bearer TOKEN` with every request.

## Refresh

A refresh token is valid for 30 days. It is exchanged for a new access token, and is valid once.

## Errors

A request without a token, or with an expired one, is answered with 401.
"""

KINDS = [".md", ".markdown", ".rst", ".txt", ".adoc", ".toml", ".rs", ".c", ".h", ".json", ".yml", ".html"]
"""Extensions of text files, those of documents first."""


def text_files(registry):
    """Returns the names and bytes of text files: by kind, and in each kind by the hash of their names."""
    found = []
    for path in registry.glob("*/*/**/*"):
        name = path.relative_to(registry).as_posix().split("/", 1)[1]
        if path.suffix in KINDS and path.is_file() and not any(part.startswith(".") for part in name.split("/")):
            found.append((KINDS.index(path.suffix), hashlib.sha256(name.encode()).digest(), name, path))
    for _, _, name, path in sorted(found):
        content = path.read_bytes()
        if is_text(content) and 0 < len(content) <= MAX_FILE_BYTES:
            yield name, content


def is_text(content):
    """Returns true for UTF-8 without U+0000."""
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def write(folder, name, content):
    """Writes a file. The names of files that are not Markdown end in `.txt`."""
    path = folder / (name if name.endswith((".md", ".markdown", ".txt")) else f"{name}.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path.relative_to(folder).as_posix()


def write_example(folder, files):
    """Writes the files of the contract's example."""
    for name, content in files[:EXAMPLE_FILES]:
        write(folder, name, content)
    write(folder, "docs/api/authentication.md", EXAMPLE.encode())
    return sum(name.endswith((".md", ".markdown")) for name, _ in files[:EXAMPLE_FILES])


def check_example(server):
    """Asks the contract's question with the tool and over HTTP."""
    tool = server.tool("search_docs", query=QUESTION, project_id="my-project")["results"]
    status, _, body = server.post("/api/v1/search", {
        "query": QUESTION, "project_id": "my-project", "top_k": 5, "category": None, "use_reranker": True})
    assert status == 200, body
    posted = json.loads(body)["results"]
    for results, path, text in ((tool, "path", "text"), (posted, "document_path", "content")):
        paths = [result[path] for result in results]
        assert paths[0] == "docs/api/authentication.md", paths
        assert "Authentication is handled via JWT tokens" in results[0][text], results[0]
    assert posted[0]["chunk_index"] == 0 and posted[0]["document_title"] == "Authentication Guide", posted[0]
    return [result["document_path"] for result in posted]


def with_crlf(content):
    return content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def concatenated(files, change):
    """Returns changed files one after another, until they have 5 MB."""
    parts, size = [], 0
    for _, content in files:
        parts.append(change(content))
        size += len(parts[-1])
        if size >= LARGE_BYTES:
            return b"".join(parts)
    raise AssertionError(f"the text files of the registry have only {size} bytes")


def forms(files):
    """Returns real files as they are, with CRLF, and with a byte order mark; long ones made of them; and texts at limits."""
    bom = "\ufeff".encode()
    changes = [lambda content: content, with_crlf, lambda content: bom + content, lambda content: bom + with_crlf(content)]
    for number, (name, content) in enumerate(files):
        yield name, changes[number % len(changes)](content)
    yield "made/five-megabytes.md", concatenated(files, changes[0])
    yield "made/five-megabytes-of-crlf.txt", concatenated(files, changes[3])
    line = concatenated(files, lambda content: content.replace(b"\r", b" ").replace(b"\n", b" "))
    yield "made/one-line.txt", line[: 1 << 20].decode(errors="ignore").encode()
    texts = ["", " ", "\n", "\r\n", "\r", "no line end", "\n\n \t\n", "a\r\r\nb\n\rc", "\u2028\u2029\u0085\t\f"]
    texts += ["e\u0301\u202e\U0001f600", "\ufeff", "\ufeff\ufeff"]
    for number, text in enumerate(texts):
        yield f"made/text-{number}.txt", text.encode()


def read_parts(server, path):
    """Returns the text of a document, the number of its parts, and its hash."""
    text, parts, named = [], 0, path
    while named is not None:
        part = server.tool("get_document", path=named, project_id="files")
        assert part["document"]["path"] == path, (path, part["document"])
        size = len(json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode())
        assert size <= MAX_PART_BYTES, (path, size)
        text.append(part["text"])
        parts, named = parts + 1, part.get("next")
    return "".join(text).encode(), parts, part["document"]["content_hash"]


def equal_bytes(one, other):
    """Returns the number of equal bytes at the start of two texts."""
    return next((at for at, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), min(len(one), len(other)))


def check_files(server, written):
    """Reads documents and compares each with its file."""
    total = most = 0
    for path, content in written.items():
        text, parts, digest = read_parts(server, path)
        assert text == content, f"{path}: {len(text)} of {len(content)} bytes, equal up to byte {equal_bytes(text, content)}"
        assert digest == hashlib.sha256(content).hexdigest(), path
        total, most = total + len(content), max(most, parts)
    return total, most


def main():
    binary, registry = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    files = list(text_files(registry))
    assert len(files) >= READ_FILES, f"{registry} has {len(files)} text files and not {READ_FILES}: run `cargo fetch`"
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        store = folder / "store.db"
        markdown = write_example(folder / "example", files)
        import_folder(binary, store, "my-project", folder / "example")
        written = {write(folder / "files", name, content): content for name, content in forms(files[:READ_FILES])}
        import_folder(binary, store, "files", folder / "files")
        with Server(binary, "--store", store) as server:
            paths = check_example(server)
            print(f"{QUESTION!r} among {EXAMPLE_FILES} files, {markdown} of them Markdown: {', '.join(paths)}")
            total, most = check_files(server, written)
            print(f"{len(written)} files, {total} bytes, are equal byte for byte; the longest has {most} parts")


if __name__ == "__main__":
    main()
