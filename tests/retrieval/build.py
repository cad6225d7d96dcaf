#!/usr/bin/env python3
"""Builds labelled sets from text that packages of this machine ship.

    build.py OUT [--set NAME ...] [--limit N] [--per-kind N] [--natural N]

Each set is a folder of OUT with `records.ndjson`, which `fetchwell import records` reads, and `questions.jsonl`, which
`fetchwell eval` reads. Sets t1 to t3 are for tuning, r1 to r3 for reporting; they share no project. A name that ends in n
is the natural set of the same text: every question is a summary, and no record has its summary. Set c1 is for CI: doc comments
of the crates in `Cargo.lock`.
"""

import argparse
import json
import random
from pathlib import Path

import corpora
import kinds

SEED = 1

PER_KIND = 30
"""Questions of each kind. Kinds count equally however many there are of each."""

NATURAL = 300
"""Questions of a natural set."""

SOURCES = {"1": "rustdoc", "2": "manual", "3": "history"}
SIDES = {"t": "tuning", "r": "reporting"}
SETS = [f"{side}{number}{natural}" for side in SIDES for number in SOURCES for natural in ("", "n")]
CI_SET = "c1"
ROOT = Path(__file__).resolve().parents[2]


def side_of(project):
    """Returns the side of a project."""
    return "t" if kinds.digest(f"side:{project}") % 2 == 0 else "r"


def data_of(item, is_bare):
    """Returns the fields of a record. A bare record does not have the summary."""
    data = {}
    named = item.stream in ("items", "pages", "releases")
    title = item.title if named else (item.title if is_bare else item.summary)
    if title:
        data["title"] = title
    data.update(item.fields)
    if item.author:
        data["author"] = item.author
    if item.date:
        data["date"] = item.date
    body = item.text
    if named and item.summary and not is_bare:
        body = f"{item.summary}\n\n{body}"
    data["body"] = body
    return data


def records_of(items, is_natural, limit):
    """Returns the records of a set, without duplicates."""
    records, seen = [], set()
    for item in items:
        is_bare = is_natural or kinds.digest(f"bare:{item.origin}:{item.title}:{item.summary}") % 2 == 0
        if is_natural and not item.summary:
            continue
        summary = " ".join(item.summary.split())
        # A text that repeats its summary would give the answer away.
        if is_bare and len(summary) > 12 and summary in " ".join(item.text.split()):
            continue
        text = kinds.text_digest(item.text)
        if text in seen:
            continue
        seen.add(text)
        records.append((item, is_bare))
    records.sort(key=lambda record: kinds.digest(f"order:{record[0].origin}:{record[0].title}:{record[0].summary}"))
    records = records[:limit]
    return [kinds.Record(item, f"r{at:05}", data_of(item, is_bare), is_bare) for at, (item, is_bare) in enumerate(records)]


def build(name, items, out, arguments):
    """Writes the records and questions of a set."""
    is_natural = name.endswith("n")
    items = [item for item in items if name == CI_SET or side_of(item.project) == name[0]]
    records = records_of(items, is_natural, arguments.limit)
    corpus = kinds.Corpus(name, records)
    wanted = kinds.NATURAL if is_natural else kinds.KINDS
    count = arguments.natural if is_natural else arguments.per_kind
    made = kinds.questions(corpus, wanted, count, lambda kind: random.Random(f"{SEED}:{name}:{kind}"))
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "records.ndjson", "w") as file:
        for record in records:
            envelope = {"stream": record.item.stream, "key": record.key, "data": record.data}
            if record.item.date:
                envelope["emitted_at"] = record.item.date if "T" in record.item.date else record.item.date + "T00:00:00Z"
            file.write(json.dumps(envelope, ensure_ascii=False) + "\n")
    with open(folder / "questions.jsonl", "w") as file:
        for question in made:
            file.write(json.dumps(question, ensure_ascii=False) + "\n")
    counts = {}
    for question in made:
        counts[question["kind"]] = counts.get(question["kind"], 0) + 1
    print(f"{name}: {len(records)} records, {len(made)} questions: {json.dumps(counts)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--set", dest="sets", nargs="+", choices=[*SETS, CI_SET], default=SETS)
    parser.add_argument("--limit", type=int, default=6000, help="records of a set")
    parser.add_argument("--per-kind", type=int, default=PER_KIND)
    parser.add_argument("--natural", type=int, default=NATURAL)
    parser.add_argument("--registry", type=Path, default=Path.home() / ".cargo/registry/src")
    parser.add_argument("--repository", type=Path, default=ROOT)
    arguments = parser.parse_args()
    readers = {
        "1": lambda: corpora.rustdoc(arguments.registry),
        "2": corpora.manual,
        "3": lambda: corpora.history(arguments.repository, arguments.registry),
    }
    if CI_SET in arguments.sets:
        items = corpora.rustdoc(arguments.registry, lock=ROOT / "Cargo.lock")
        build(CI_SET, items, arguments.out, arguments)
    for number, read in readers.items():
        names = [name for name in arguments.sets if name[1] == number and name != CI_SET]
        if names:
            items = list(read())
            for name in names:
                build(name, items, arguments.out, arguments)


if __name__ == "__main__":
    main()
