#!/usr/bin/env python3
"""Imports a folder of mixed files and prints its counts and its peak memory.

    benches/mixed.py FETCHWELL [FILES [FOLDER]]

FILES (default: 10,000) files of every kind that `fetchwell import files` reads are made from fixtures/samples, fixtures/files
and generated content. With FOLDER, every third file is one of that folder, such as target/readers/work/files, which
tests/readers/run makes of packages. One in four is damaged: truncated, empty, with changed bytes, or with the extension of another
kind; of the files of FOLDER it is one in two. The files are the same on every run. Fails if a reader panicked, if the import took
more than 400 MB, or if a file is neither imported nor named.
"""

import collections
import gzip
import io
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
SAMPLES = FIXTURES / "samples"
# Extensions of files that are recognized by their folders.
MAILDIR, SLACK = ":2,S", " slack"
WORDS = "harbour lighthouse invoice meeting garden letter report winter summary ticket platform river".split()
MAX_MEMORY_BYTES = 400_000_000
# Runs a program and writes its status, CPU time and peak memory. A process begins with the peak of the one that starts it, so that
# this one has to be small.
LAUNCH = """
import json, os, sys
_pid, status, usage = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
print(json.dumps([status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss]), file=open(sys.argv[1], "w"))
"""
MAIN_PARTS = re.compile(r"word/document\.xml|content\.xml|slide1\.xml|sharedStrings\.xml|\.xhtml$")


def words(number, count):
    chosen = random.Random(number)
    return " ".join(chosen.choice(WORDS) for _ in range(count)) + f" n{number}"


def mail(number):
    return (
        f"From: Ann <ann{number % 50}@example.test>\r\nTo: bo@example.test\r\nSubject: {words(number, 4)}\r\n"
        f"Date: Wed, {number % 28 + 1} Apr 2026 10:00:00 +0000\r\nMessage-ID: <m{number}@example.test>\r\n\r\n"
        f"{words(number, 80)}\r\n"
    ).encode()


def mailbox(number):
    separator = b"From ann@example.test Wed Apr  1 10:00:00 2026\n"
    return b"".join(separator + mail(number * 10 + part).replace(b"\r\n", b"\n") + b"\n" for part in range(5))


def table(number, separator):
    rows = [["id", "title", "amount", "date"]]
    rows += [[str(row), words(number + row, 3), str(row * 7), "2026-04-01"] for row in range(20)]
    return "\n".join(separator.join(row) for row in rows).encode()


def database(number):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body TEXT, data BLOB)")
    rows = [(row, words(row, 3), words(number + row, 30), bytes([0, 255, row])) for row in range(10)]
    connection.executemany("INSERT INTO notes VALUES (?, ?, ?, ?)", rows)
    return connection.serialize()


def entries(number):
    yield "a.txt", words(number, 60).encode()
    yield "notes/b.md", f"# {words(number, 3)}\n\n{words(number, 60)}".encode()
    yield "c.csv", table(number, ",")
    yield "mail.eml", mail(number)
    yield "inner.tgz", tar(number, [("deep.txt", words(number, 40).encode())], "w:gz")


def archive(number):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries(number):
            file.writestr(name, content)
    return written.getvalue()


def tar(number, content, mode):
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=mode) as file:
        for name, data in content:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), 1_775_000_000 + number
            file.addfile(entry, io.BytesIO(data))
    return written.getvalue()


def office(path, number):
    """Returns an office document or book with another first text in its main part."""
    written = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(written, "w") as target:
        for part in source.infolist():
            data = source.read(part)
            if MAIN_PARTS.search(part.filename):
                text = f">{words(number, 5)} ".encode()
                data = re.sub(rb">(?=[A-Za-z][^<>]*</)", lambda _match: text, data, count=1)
            target.writestr(part, data)
    return written.getvalue()


def with_ids(path, number):
    """Returns a sample with ids that no other file has."""
    data = path.read_bytes()
    data = re.sub(rb"(?m)^(UID:[^\r\n]*)", rb"\g<1>-%d" % number, data)
    data = re.sub(rb"(<guid[^>]*>|<id>)([^<]*)", rb"\g<1>\g<2>-%d" % number, data)
    data = re.sub(rb'("number": ?|/issues/|/pull/)(\d+)', rb"\g<1>%d\g<2>" % (number + 1), data)
    return re.sub(rb'("(?:id|uuid|conversation_id|client_msg_id)": ?")', rb"\g<1>%d-" % number, data)


def sample_files():
    """Returns the makers of files: an extension with a function from the number of a file to its content."""
    makers = []

    def add(ending, make):
        makers.append((ending, make))

    for ending in ["txt", "log", "rst", "adoc", "org", "tex"]:
        add(f".{ending}", lambda n: f"{words(n, 5)}\n\n{words(n, 200)}\n".encode())
    add(".txt", lambda n: words(n, 100).encode("utf-16"))
    for _ in range(4):
        add(".md", lambda n: f"---\ntags: [a, b{n % 9}]\n---\n# {words(n, 4)}\n\n{words(n, 240)}\n".encode())
    add(".html", lambda n: f"<html><title>{words(n, 4)}</title><body><p>{words(n, 200)}</body></html>".encode())
    add(".html", lambda n: (SAMPLES / "libxslt.html").read_bytes())
    for _ in range(3):
        add(".eml", mail)
    add(MAILDIR, mail)
    add(".mbox", mailbox)
    add(".mbox.gz", lambda n: gzip.compress(mailbox(n)))
    add(".csv", lambda n: table(n, ","))
    add(".tsv", lambda n: table(n, "\t"))
    for name in ["plan.docx", "deck.pptx", "letter.odt", "trips.ods", "trips.xlsx", "book.epub"]:
        path = FIXTURES / "files" / name
        add(path.suffix, lambda n, path=path: office(path, n))
    for path in sorted((FIXTURES / "files").glob("*.pdf")):
        add(".pdf", lambda n, path=path: path.read_bytes())
    add(".zip", archive)
    add(".tar", lambda n: tar(n, entries(n), "w"))
    add(".tar.gz", lambda n: tar(n, entries(n), "w:gz"))
    add(".txt.gz", lambda n: gzip.compress(words(n, 100).encode()))
    add(".db", database)
    for path in sorted(SAMPLES.glob("*.*")):
        if path.suffix in [".ics", ".vcf", ".rss", ".atom", ".json"]:
            add(path.suffix, lambda n, path=path: with_ids(path, n))
    for name in ["chatgpt", "claude"]:
        path = SAMPLES / name / "conversations.json"
        add(".json", lambda n, path=path: with_ids(path, n))
    day = next((SAMPLES / "slack" / "general").glob("*.json"))
    add(SLACK, lambda n: re.sub(rb"\b17750(?=\d{5}\.)", b"%d" % (10_000 + n % 8_000), day.read_bytes()))
    for path in sorted((SAMPLES / "encrypted").iterdir()):
        add(path.suffix, lambda n, path=path: path.read_bytes())
    for path in sorted((SAMPLES / "kinds").rglob("*.*")):
        if path.is_file():
            add(path.suffix, lambda n, path=path: path.read_bytes().replace(b"2021", b"%d" % (2000 + n % 26)))
    add(".xls", lambda n: (SAMPLES / "trips.xls").read_bytes())
    for ending, make in chats_and_notes():
        add(ending, make)
    # Kinds that are not read.
    add(".json", lambda n: json.dumps({"number": n, "words": words(n, 9)}).encode())
    add(".rs", lambda n: f"fn main() {{ println!(\"{n}\"); }}\n".encode())
    add(".jpg", lambda n: b"\xff\xd8\xff\xe0" + random.Random(n).randbytes(2_000))
    add("", lambda n: random.Random(n).randbytes(500))
    return makers


def chats_and_notes():
    """Yields makers of the exports of chats and notes."""
    yield ".enex", lambda n: (
        f"<?xml version='1.0'?><en-export><note><title>{words(n, 4)}</title><created>20260401T100000Z</created><content><![CDATA["
        f"<en-note><div>{words(n, 90)}</div></en-note>]]></content></note></en-export>"
    ).encode()
    yield " WhatsApp.txt", lambda n: "".join(
        f"[{day:02}/03/2024, 14:05:{day:02}] Ann {n}: {words(n + day, 12)}\n" for day in range(1, 28)).encode()
    yield " My Clippings.txt", lambda n: "".join(
        f"Book {n} (Ann)\n- Your Highlight on page {at} | Added on Friday, March 1, 2024 10:00:{at:02} AM\n\n{words(n + at, 20)}\n"
        "==========\n" for at in range(1, 9)).encode()
    yield " result.json", lambda n: json.dumps({"name": f"Chat {n}", "type": "personal_chat", "id": n, "messages": [
        {"id": at, "type": "message", "date": f"2024-03-05T14:05:{at:02}", "from": "Ann", "text": words(n + at, 12)}
        for at in range(9)]}).encode()
    yield ".json", lambda n: json.dumps({
        "title": words(n, 4), "textContent": words(n, 60), "isTrashed": False, "isPinned": False, "isArchived": False,
        "color": "DEFAULT", "userEditedTimestampUsec": 1_709_647_512_000_000 + n}).encode()
    yield ".html", lambda n: (
        "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>Bookmarks</TITLE><DL><p>"
        + "".join(f'<DT><A HREF="https://x.test/{n}/{at}" ADD_DATE="1709647512">{words(n + at, 4)}</A>' for at in range(9))
        + "</DL>").encode()
    yield ".py", lambda n: f"# {words(n, 9)}\ndef f{n}():\n    return '{words(n, 30)}'\n".encode()
    yield ".yaml", lambda n: f"name: {words(n, 3)}\nvalue: {n}\n".encode()


def real_files(folder):
    """Returns makers of the files of a folder."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    random.Random(11).shuffle(paths)
    return [(path.suffix, lambda n, path=path: path.read_bytes()) for path in paths]


def damaged(data, ending, chance, endings):
    """Returns the content and the extension of a file, one in four of them damaged, and the name of the damage."""
    draw = chance.random()
    if draw < 0.10:
        return data[: chance.randrange(1, max(2, len(data)))], ending, "truncated"
    if draw < 0.17:
        return data, chance.choice(endings), "wrong extension"
    if draw < 0.23:
        changed = bytearray(data)
        for _ in range(8):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        return bytes(changed), ending, "changed bytes"
    if draw < 0.25:
        return b"", ending, "empty"
    return data, ending, "intact"


def make(folder, count, real):
    makers, chance, kinds = sample_files(), random.Random(7), collections.Counter()
    reals = real_files(real) if real else []
    endings = sorted({ending for ending, _make in makers if ending.startswith(".")})
    for number in range(count):
        ending, make_content = makers[number % len(makers)]
        is_real = bool(reals) and number % 3 == 0
        if is_real:
            ending, make_content = reals[number // 3 % len(reals)]
        data, ending, damage = damaged(make_content(number), ending, chance, endings)
        if is_real and damage == "intact":
            data, ending, damage = damaged(data, ending, chance, endings)
        file = folder / f"d{number // 250:03}" / f"f{number:05}{ending}"
        if ending == MAILDIR:
            file = folder / "maildir" / "cur" / file.name
        if ending == SLACK:
            file = folder / f"f{number:05}" / "general" / "2026-04-01.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        kinds[damage] += 1
    (folder / "maildir" / "new").mkdir(parents=True, exist_ok=True)
    return kinds


def reason_of(line):
    """Returns the reason of a line of the report without numbers and names."""
    reason = re.sub(r"`[^`]*`|\"[^\"]*\"|\S*f\d{5}\S*", "…", line["reason"])
    return re.sub(r"\d[\d,.]*", "N", reason)[:110]


def lost_files(folder, files, store, lines):
    """Returns the files of which neither a record nor a line of the report has the name, apart from equal and empty ones."""
    seen = [line.get("rejected") or line.get("skipped") or line.get("noted") or "" for line in lines]
    with sqlite3.connect(store) as connection:
        for data, key in connection.execute("SELECT data, key FROM records WHERE data IS NOT NULL"):
            seen += [json.loads(data).get("path") or "", key]
    numbers = {number for name in seen for number in re.findall(r"f\d{5}", name)}
    contents = collections.Counter(path.read_bytes() for path in files)
    lost = []
    for path in files:
        data = path.read_bytes()
        if not set(re.findall(r"f\d{5}", str(path.relative_to(folder)))) & numbers and data.strip() and contents[data] == 1:
            lost.append(str(path.relative_to(folder)))
    return lost


def is_read(program, path):
    """Returns true if a file by itself is imported or named. Another file may have a message or bookmark with the same id."""
    with tempfile.TemporaryDirectory() as place:
        alone = pathlib.Path(place) / "files" / path.relative_to(path.parents[1])
        alone.parent.mkdir(parents=True)
        alone.write_bytes(path.read_bytes())
        command = [program, "import", "files", str(alone.parents[1]), "--connection", "alone", "--json", "--no-embed"]
        output = subprocess.run([*command, "--store", os.path.join(place, "store.db")], capture_output=True, text=True)
    summary = json.loads(output.stdout or "{}")
    return sum(summary.get(key, 0) for key in ["added", "rejected", "skipped"]) > 0 or output.returncode in (1, 3)


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    real = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "files"
        kinds = make(folder, count, real)
        files = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        report, output, errors = (os.path.join(place, name) for name in ["report", "output", "errors"])
        command = [program, "import", "files", str(folder), "--connection", "mixed", "--json"]
        command += ["--store", os.path.join(place, "store.db"), "--report", report, "--no-embed"]
        with open(output, "wb") as out, open(errors, "wb") as problems:
            started = time.monotonic()
            used = os.path.join(place, "used")
            subprocess.run([sys.executable, "-c", LAUNCH, used, *command], stdout=out, stderr=problems, check=True)
            seconds = time.monotonic() - started
        status, cpu, memory = json.loads(pathlib.Path(used).read_text())
        returncode = os.waitstatus_to_exitcode(status)
        summary = json.loads(pathlib.Path(output).read_text() or "{}")
        lines = [json.loads(line) for line in open(report, encoding="utf-8")]
        said = pathlib.Path(errors).read_text()
        lost = lost_files(folder, files, os.path.join(place, "store.db"), lines)
        lost = [name for name in lost if not is_read(program, folder / name)]
    rejected = collections.Counter(reason_of(line) for line in lines if "rejected" in line)
    skipped = collections.Counter(pathlib.Path(line["skipped"]).suffix for line in lines if "skipped" in line)
    panics = sum("internal error" in line.get("reason", "") for line in lines) + said.count("panicked at")
    print(f"files     {len(files):,} ({size / 2**20:.0f} MiB): {dict(kinds)}")
    print(f"records   {summary.get('added')}, exit code {returncode}")
    print(f"time      {seconds:.1f} s, CPU {cpu:.1f} s, peak {memory / 1024:.0f} MiB")
    print(f"panics    {panics}")
    print(f"lost      {len(lost)} {lost[:9]}")
    print(f"rejected  {summary.get('rejected')} files and pieces, by reason:")
    for reason, number in rejected.most_common():
        print(f"  {number:6,}  {reason}")
    print(f"skipped   {summary.get('skipped')} files of no kind that is read, by extension: {dict(skipped.most_common())}")
    if panics or returncode not in (0, 1, 3):
        sys.exit(said[-2_000:] or "a reader panicked")
    if lost or memory * 1024 > MAX_MEMORY_BYTES:
        sys.exit("files are neither imported nor named, or it took too much memory")


main()
