"""Compares the results of the conformance suite with the table in docs/conformance.md.

Usage: conformance_table.py docs/conformance.md RESULTS, where RESULTS has a folder of results for each revision

A cell is the number of checks that passed, none having failed; `no` where the scenario does not apply and so fails, for
the reason in the last column; or a dash where the revision has no such scenario. Everything else ends with an error: a
failure, a scenario that the table does not have, a `no` that passes, another number of checks.
"""

import json
import pathlib
import re
import sys

REVISIONS = ["2025-11-25", "2026-07-28"]


def expected(table):
    """Returns the cells and the reason of each scenario."""
    rows = {}
    for line in table.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == len(REVISIONS) + 2:
            rows[cells[0].strip("`")] = (dict(zip(REVISIONS, cells[1:])), cells[-1])
    return rows


def came(folder):
    """Returns the statuses and the failures of the checks of each scenario."""
    scenarios = {}
    for result in sorted(folder.glob("*/checks.json")):
        name = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", result.parent.name)[1]
        scenarios[name] = json.loads(result.read_text())
    return scenarios


def main(table, results):
    rows = expected(pathlib.Path(table))
    problems = []
    passed = 0
    for revision in REVISIONS:
        scenarios = came(pathlib.Path(results, revision))
        if not scenarios:
            problems.append(f"{revision}: the suite gave no results; see {results}/{revision}.log")
        for name, checks in scenarios.items():
            cells, reason = rows.get(name, ({}, ""))
            said = cells.get(revision, "nothing")
            successes = [check for check in checks if check["status"] == "SUCCESS"]
            failures = [check for check in checks if check["status"] == "FAILURE"]
            passed += len(successes)
            if said == "no":
                if not reason:
                    problems.append(f"{revision} {name}: the table does not say why it does not apply")
                if not failures:
                    problems.append(f"{revision} {name}: the table says that it does not apply, and it passes")
                continue
            for check in failures:
                problems.append(f"{revision} {name}: {check['id']}: {check.get('errorMessage', 'failed')}")
            if not failures and said != str(len(successes)):
                problems.append(f"{revision} {name}: {len(successes)} checks passed, and the table says {said}")
            for check in checks:
                if check["status"] == "WARNING":
                    print(f"warning: {revision} {name}: {check['id']}: {check.get('errorMessage') or check.get('details')}")
        for name, (cells, _) in rows.items():
            if cells[revision] != "–" and name not in scenarios:
                problems.append(f"{revision} {name}: the table has it, and the suite did not run it")
    for problem in problems:
        print(f"conformance: {problem}")
    if problems:
        print("conformance: is this a build with --features conformance?")
        sys.exit(1)
    print(f"conformance: {passed} checks passed, as {table} says")


main(*sys.argv[1:])
