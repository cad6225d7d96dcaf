#!/usr/bin/env python3
"""Scores other searchers on a set, and compares runs.

    baselines.py run tantivy|fts5 SET --out RUN.json     score a set with tantivy-py's defaults or with SQLite FTS5
    baselines.py table RUN.json ...                      print nDCG@10 by kind and in all
    baselines.py compare A.json B.json                   print A - B with 95 % intervals
    baselines.py floors RUN.json FLOORS.json             fail if the nDCG@10 of a kind, or of all, is below its floor

`fetchwell eval --json` writes a run too: both have `questions` with the measures of each. tantivy-py (`pip install
tantivy`) indexes title and body with its default tokenizer and parses each query leniently over both fields. FTS5 has the
columns title and body, its default tokenizer, and any word of the query in quotes, ranked by bm25().
"""

import argparse
import json
import re
import sqlite3
import sys
import time
from pathlib import Path

import metrics

LIMIT = 50


def records(folder):
    """Yields id, title and body of the records of a set. The body has all other fields."""
    for line in open(folder / "records.ndjson"):
        record = json.loads(line)
        data = record["data"]
        body = "\n".join(str(value) for name, value in data.items() if name != "title")
        yield f"{folder.name}/{record['stream']}:{record['key']}", data.get("title", ""), body


def tantivy_searcher(folder):
    """Returns a search over an index of tantivy-py with its defaults."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    builder.add_text_field("title")
    builder.add_text_field("body")
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for name, title, body in records(folder):
        writer.add_document(tantivy.Document(id=name, title=title, body=body))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(text):
        query, _ = index.parse_query_lenient(text, ["title", "body"])
        return [searcher.doc(address)["id"][0] for _, address in searcher.search(query, LIMIT).hits]

    return search


def fts5_searcher(folder):
    """Returns a search over an FTS5 table, any word."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, title, body)")
    database.executemany("INSERT INTO texts VALUES (?, ?, ?)", records(folder))

    def search(text):
        words = re.findall(r"\w+", text)
        if not words:
            return []
        query = " OR ".join(f'"{word}"' for word in words)
        rows = database.execute("SELECT id FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?", (query, LIMIT))
        return [name for (name,) in rows]

    return search


SEARCHERS = {"tantivy": tantivy_searcher, "fts5": fts5_searcher}


def run(arguments):
    """Scores a searcher on a set."""
    search = SEARCHERS[arguments.searcher](arguments.set)
    scores = []
    for line in open(arguments.set / "questions.jsonl"):
        question = json.loads(line)
        started = time.perf_counter()
        ranked = search(question["query"])
        taken = (time.perf_counter() - started) * 1000
        measured = metrics.measure(question, ranked)
        scores.append({"id": question["id"], "kind": question["kind"], **measured, "ms": taken})
    arguments.out.write_text(json.dumps({"questions": scores}))
    print(f"{arguments.out.stem}: nDCG@10 {metrics.overall(scores, 'ndcg_10'):.3f}")


def load(path):
    """Returns the scores of a run's questions."""
    run = json.loads(path.read_text())
    return run["runs"][0]["questions"] if "runs" in run else run["questions"]


def table(arguments):
    """Prints the nDCG@10 of runs by kind."""
    runs = [(path.stem, load(path)) for path in arguments.runs]
    rows = [["kind"] + [name for name, _ in runs]]
    by_kind = [metrics.of_kinds(scores, "ndcg_10") for _, scores in runs]
    for kind in by_kind[0]:
        rows.append([kind] + [f"{metrics.mean(kinds[kind]):.3f}" for kinds in by_kind])
    rows.append(["all"] + [f"{metrics.overall(scores, 'ndcg_10'):.3f}" for _, scores in runs])
    rows.append(["interval"] + ["{:.3f} to {:.3f}".format(*metrics.interval(kinds)) for kinds in by_kind])
    for name in metrics.MEASURES:
        if name != "ndcg_10":
            rows.append([name] + [f"{metrics.overall(scores, name):.3f}" for _, scores in runs])
    print_table(rows)


def compare(arguments):
    """Prints the difference of two runs by kind."""
    rows = [["kind", "n", "difference", "interval"]]
    kinds = metrics.of_kinds(metrics.difference(load(arguments.one), load(arguments.other)), "ndcg_10")
    for kind, values in [*kinds.items(), ("all", None)]:
        group = {kind: values} if values else kinds
        low, high = metrics.interval(group)
        middle = metrics.mean([metrics.mean(each) for each in group.values()])
        count = sum(len(each) for each in group.values())
        rows.append([kind, str(count), f"{middle:+.3f}", f"{low:+.3f} to {high:+.3f}"])
    print_table(rows)


def floors(arguments):
    """Fails if a kind of the run is below its floor, or is not in the run."""
    scores = load(arguments.run)
    found = {kind: metrics.mean(values) for kind, values in metrics.of_kinds(scores, "ndcg_10").items()}
    found["all"] = metrics.overall(scores, "ndcg_10")
    low = [
        f"{kind}: nDCG@10 {found.get(kind, 0):.3f}, floor {floor:.2f}"
        for kind, floor in json.loads(arguments.floors.read_text()).items()
        if found.get(kind, 0) < floor
    ]
    if low:
        sys.exit("below the floor:\n  " + "\n  ".join(low))


def print_table(rows):
    """Prints rows as a Markdown table."""
    for at, row in enumerate(rows):
        print("| " + " | ".join(row) + " |")
        if at == 0:
            print("|" + "---|" * len(row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run")
    command.add_argument("searcher", choices=SEARCHERS)
    command.add_argument("set", type=Path)
    command.add_argument("--out", type=Path, required=True)
    command.set_defaults(call=run)
    command = commands.add_parser("table")
    command.add_argument("runs", type=Path, nargs="+")
    command.set_defaults(call=table)
    command = commands.add_parser("compare")
    command.add_argument("one", type=Path)
    command.add_argument("other", type=Path)
    command.set_defaults(call=compare)
    command = commands.add_parser("floors")
    command.add_argument("run", type=Path)
    command.add_argument("floors", type=Path)
    command.set_defaults(call=floors)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    main()
