#!/usr/bin/env python3
"""Compares the records of real files with what other programs read from the same files.

    compare.py BINARY PACKAGES WORK [KIND ...]

PACKAGES has source distributions of PyPI and crates, WORK is emptied. A file is equal if its records have each word that the
other reader found, at most a fifth of further words, and the same titles and times. There is nothing to read in a file that is
named, and in which the other reader finds no words. Prints a table by kind, and the reasons of differences from `expected.json`.
Fails if a difference has no reason there, or if a kind has fewer files, or fewer equal ones, than its floor. With KIND, it only prints.
"""

import collections
import datetime
import fnmatch
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import unicodedata
from pathlib import Path

import files
import other_readers

HERE = Path(__file__).parent

MIN_SHARE_OF_OURS = 0.8
"""Share of the words of records which the other reader has, too."""

TITLE_FIELDS = ["title", "subject", "name"]

TIME_FIELDS = {"mail": ["date"], "msg": ["date"], "calendar": ["start"]}

TABLES = ["xlsx", "xls", "odf"]

NO_TITLE = re.compile(r"(powerpoint |word )?(presentation|document)|untitled.*|unspecified|title|microsoft (word|powerpoint).*|.*\.[a-z]{3,4}", re.I)
"""Titles that programs write without being told one."""


def words(texts):
    """Returns the words of texts in lower case: two characters or more, or one of Chinese and Japanese."""
    text = unicodedata.normalize("NFKC", "\n".join(texts)).replace("\u00ad", "").lower()
    # Where a reader has replacement characters, it did not know the word.
    text = re.sub(r"\w*\ufffd[\w\ufffd]*", " ", text)
    found = re.findall(r"[\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u3040-\u30ff\u3400-\u9fff])\w){2,}", text.replace("_", " "))
    return set(found)


def same_form(title):
    """Returns a title with single spaces, in one normal form."""
    return " ".join(unicodedata.normalize("NFKC", re.sub(r"[\x00-\x1f\u200b\ufeff]", " ", title)).split())


def instant(value):
    """Returns a time as UTC, a day as a day, and a local time as itself."""
    try:
        time = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return value
    if len(value) <= 10:
        return value
    return (time.astimezone(datetime.timezone.utc) if time.tzinfo else time).isoformat()


def forms(time):
    """Returns the forms that a time may have in a record: a day at midnight in a zone is a day, and an unknown zone is UTC."""
    day, clock = time[:10], time[11:19]
    return {instant(time), *([day] if clock == "00:00:00" else []), *([f"{day}T{clock}+00:00"] if not time[19:] else [])}


def strings(value):
    """Yields the strings and numbers of a value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def own_texts(kind, record):
    """Yields the texts of a record that must stand in its file: bodies, or the cells of a row."""
    if "body" in record or kind not in TABLES:
        yield record.get("body") or ""
    else:
        yield from (text for name, value in record.items() if name not in ("path", "sheet") for text in strings(value))


def import_files(binary, folder, work):
    """Imports a folder. Returns the records of each file, and the reason of each file that is named."""
    work.mkdir(parents=True, exist_ok=True)
    store, report = work / "store.db", work / "report"
    command = [binary, "import", "files", folder, "--connection", "c", "--store", store, "--report", report, "--no-embed", "--json"]
    outcome = subprocess.run(command, capture_output=True, text=True)
    assert outcome.returncode in (0, 1, 3) and "panicked" not in outcome.stderr, outcome.stderr[-2000:]
    records, reasons = collections.defaultdict(list), {}
    if store.exists():
        for (data,) in sqlite3.connect(store).execute("SELECT data FROM records WHERE data IS NOT NULL"):
            record = json.loads(data)
            records[record.get("path")].append(record)
    for line in open(report, encoding="utf-8"):
        line = json.loads(line)
        name = line.get("rejected") or line.get("skipped")
        if name:
            reasons[name] = line["reason"]
    return records, reasons


def our_records(binary, kind, names, folder, work):
    """Imports the files of a kind. Messages with the id of another one are imported by themselves."""
    records, reasons = import_files(binary, folder / kind, work / kind)
    for number, name in enumerate(names):
        name = name.split("/", 1)[1]
        if name not in records and name not in reasons:
            alone = work / f"alone-{kind}-{number}" / "files" / name
            alone.parent.mkdir(parents=True)
            shutil.copy(folder / kind / name, alone)
            found, why = import_files(binary, work / f"alone-{kind}-{number}" / "files", work / f"alone-{kind}-{number}")
            records.update(found)
            reasons.update(why)
    return records, reasons


def reason_of(name, reasons):
    """Returns why a file, or a part of it, was not read."""
    for known, reason in reasons.items():
        if known == name or known.startswith((f"{name}/", f"{name}:")):
            return reason
    return None


def judge(kind, records, other):
    """Returns `equal`, or the differences between records and what another reader found, and the two shares of words."""
    theirs = words(other["texts"])
    ours = words(text for record in records for text in strings(record))
    permitted = theirs | words(other["titles"]) | words(other["permitted"])
    for choice in other["choices"]:
        alternatives = [words(texts) for texts in choice] or [set()]
        theirs |= min(alternatives, key=lambda found: len(found - ours))
        permitted = permitted.union(*alternatives)
    texts = {word for word in words(text for record in records for text in own_texts(kind, record)) if word.isalpha()}
    missing = theirs - ours
    further = texts - permitted
    found = {"missing": sorted(missing), "further": sorted(further),
             "share": 1 - len(missing) / max(1, len(theirs)), "share_of_ours": 1 - len(further) / max(1, len(texts))}
    titles = {"", *(same_form(record[field]) for record in records for field in TITLE_FIELDS if isinstance(record.get(field), str))}
    found["titles"] = [title for title in other["titles"] if same_form(title) not in titles and "\ufffd" not in title and not NO_TITLE.fullmatch(same_form(title))]
    times = {instant(record[field]) for record in records for field in TIME_FIELDS.get(kind, []) if isinstance(record.get(field), str)}
    found["times"] = [time for time in other["times"] if not forms(time) & times] if times or kind == "calendar" else []
    found["our_titles"], found["our_times"] = sorted(titles)[:3], sorted(times)[:3]
    equal = not missing and found["share_of_ours"] >= MIN_SHARE_OF_OURS and not found["titles"] and not found["times"]
    return ("equal" if equal else "different"), found


def read_by_others(names, folder):
    """Returns what the other readers found, by file."""
    command = [sys.executable, HERE / "other_readers.py", folder]
    lines = subprocess.run(command, input="".join(f"{name}\n" for name in names), stdout=subprocess.PIPE, text=True, check=True).stdout
    return {answer["file"]: answer for answer in map(json.loads, lines.splitlines())}


def compare(binary, packages, work, only):
    """Yields the kind, the name, the outcome and the details of each file of the kinds in `only`, or of all."""
    folder = work / "files"
    for kind, names in sorted(files.collect(packages, folder).items()):
        if only and kind not in only:
            continue
        records, reasons = our_records(binary, kind, names, folder, work)
        others = read_by_others(names, folder)
        for name in names:
            found, other = records.get(name.split("/", 1)[1], []), others[name]
            reason = reason_of(name.split("/", 1)[1], reasons)
            if "failed" in other:
                yield kind, name, "other failed", {"other": other["failed"], "ours": reason or f"{len(found)} records"}
            elif found:
                outcome, details = judge(kind, found, other)
                yield kind, name, outcome, {**details, "reason": reason}
            elif reason:
                yield kind, name, "named", {"reason": reason, "words": len(words(other["texts"]))}
            else:
                empty = not words(other["texts"])
                yield kind, name, "equal" if empty else "lost", {"missing": sorted(words(other["texts"]))[:20]}


def reason_for(name, reasons):
    """Returns the known reason for a difference, or `None`."""
    return next((reason for reason, patterns in reasons.items() if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)), None)


def check(outcomes, floors, reasons):
    """Prints the table, and returns what is wrong: unknown differences, and kinds below their floors."""
    counts, problems, known = collections.defaultdict(collections.Counter), [], collections.Counter()
    for kind, name, outcome, details in outcomes:
        if outcome == "named" and details["words"] == 0:
            outcome = "nothing to read"
        counts[kind][outcome] += 1
        if outcome in ("different", "named", "lost"):
            reason = reason_for(name, reasons)
            known[kind, reason] += 1
            if reason is None:
                shown = {key: value[:8] if isinstance(value, list) else value for key, value in details.items() if value}
                problems.append(f"{outcome}: {name}: {json.dumps(shown, ensure_ascii=False)[:400]}")
    print("kind        other reader   files  equal  nothing  differ  other fails")
    for kind, count in counts.items():
        numbers = [count["equal"], count["nothing to read"], count["different"] + count["named"] + count["lost"], count["other failed"]]
        total = sum(count.values())
        print(f"{kind:11} {other_readers.READERS[kind][0]:14} {total:5}" + "".join(f"{number:8}" for number in numbers))
        wanted = floors.get(kind, [0, 0])
        if total < wanted[0] or count["equal"] < wanted[1]:
            problems.append(f"{kind}: {total} files and {count['equal']} equal, of at least {wanted[0]} and {wanted[1]}")
    for (kind, reason), number in sorted(known.items(), key=str):
        print(f"{number:4} {kind}: {reason}")
    return problems


def main():
    binary, packages, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), Path(sys.argv[3])
    shutil.rmtree(work, ignore_errors=True)
    packages = [path for path in packages.iterdir() if path.name.endswith((".zip", ".tar.gz", ".crate"))]
    outcomes = list(compare(binary, packages, work, sys.argv[4:]))
    (work / "outcomes.json").write_text(json.dumps(outcomes, indent=1, ensure_ascii=False))
    expected = json.loads((HERE / "expected.json").read_text())
    problems = check(outcomes, expected["floors"], expected["differences"])
    sys.exit("\n".join(problems) if problems and not sys.argv[4:] else 0)


main()
