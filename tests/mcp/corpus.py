"""Records of the awkward servers: numbered notes, and those of special.json. corpus.mjs makes the same ones.

Note N (from 1) has the id `note-000N`, a topic, a place, an amount, and the day N of 2026 at 09:30 UTC in one of
eight spellings. All notes contain the word "ledger", and all special records the word "special". With a data set D,
the ids begin with `D-`, the titles with `D `, and the texts end with ` (D)`; special records are left out.
"""

import datetime
import json
import pathlib

TOPICS = ["invoice", "flight", "meeting", "recipe", "contract", "garden", "lesson", "repair", "payment", "concert"]
PLACES = ["Lisbon", "Oslo", "Kraków", "Lyon", "Porto", "Ghent", "Turin", "Bergen", "Graz", "Malmö", "Cork", "Basel", "Split"]
SPECIAL = json.loads(pathlib.Path(__file__).with_name("special.json").read_text("utf-8"))


def spelled(day, spelling):
    """Returns a day of 2026 at 09:30 UTC in a spelling from 0 to 7."""
    date = datetime.datetime(2026, 1, 1, 9, 30, tzinfo=datetime.timezone.utc) + datetime.timedelta(days=day)
    seconds = int(date.timestamp())
    return [
        f"{date:%Y-%m-%dT%H:%M:%SZ}",
        f"{date:%Y-%m-%d}",
        f"{date:%Y-%m-%d}T11:30:00+02:00",
        seconds,
        seconds * 1000,
        f"{date:%a, %d %b %Y %H:%M:%S} GMT",
        f"{date.day} {date:%B %Y}",
        f"{date:%m/%d/%Y}",
    ][spelling]


def note(number, data_set=None):
    """Returns a numbered note, of a data set if there are several."""
    topic = TOPICS[number % len(TOPICS)]
    amount = f"{number * 37 % 1000}.{number % 100:02}"
    prefix = f"{data_set}-" if data_set else ""
    return {
        "id": f"{prefix}note-{number:04}",
        "title": f"{data_set + ' ' if data_set else ''}{topic.capitalize()} {number}",
        "text": f"The {topic} number {number} for {PLACES[number % len(PLACES)]}: {amount} euros in the ledger."
        + (f" ({data_set})" if data_set else ""),
        "url": f"https://notes.example.com/{prefix}{number}",
        "date": spelled((number - 1) % 365, number % 8),
    }


def lengthened(text, length):
    """Returns a text with numbered lines, of a length in characters."""
    lines = [text]
    total = len(text)
    number = 0
    while total < length:
        number += 1
        lines.append(f"Line {number} of the special text, in the ledger of marmalade.")
        total += len(lines[-1]) + 1
    return "\n".join(lines)[:length]


def special(entry):
    """Returns a special record, with its id as in results."""
    record = {name: entry[name] for name in ("id", "title", "text", "url", "date") if name in entry}
    if length := entry.get("id_length"):
        record["id"] = record["id"] + "-" + "x" * (length - len(record["id"]) - 1)
    return record


class Corpus:
    """The records of a server, with a count of the fetches of changing texts."""

    def __init__(self, notes, data_set=None):
        self.records = [note(number, data_set) for number in range(1, notes + 1)]
        self.entries = [{}] * notes
        if data_set is None:
            self.entries = self.entries + SPECIAL
            self.records = self.records + [special(entry) for entry in SPECIAL]
        self.haystacks = [f"{record['title']} {record['text']}".lower() for record in self.records]
        self.by_id = {}
        for number, record in enumerate(self.records):
            if record.get("id") not in (None, ""):
                self.by_id.setdefault(self.key(record["id"]), number)
            # Results that are resources have only a URI.
            if record["url"]:
                self.by_id.setdefault(record["url"], number)
            if "id" in record:
                self.by_id.setdefault(f"note:{self.key(record['id'])}", number)
        self.fetches = 0

    @staticmethod
    def key(identifier):
        """Returns an id as text: JSON for what is no string."""
        return identifier if isinstance(identifier, str) else json.dumps(identifier)

    def search(self, query, offset, limit):
        """Returns hits with any of the words, those with more of them first, and their number. `*` finds all."""
        words = list(dict.fromkeys(query.lower().split()))
        found = []
        for number, haystack in enumerate(self.haystacks):
            score = 1 if words == ["*"] else sum(word in haystack for word in words)
            if score:
                found.append((-score, number))
        found.sort()
        hits = [dict(self.records[number]) for _, number in found[offset : offset + limit]]
        return hits, len(found)

    def fetch(self, identifier):
        """Returns the record with an id, a URL or a URI, or None."""
        number = self.by_id.get(self.key(identifier))
        if number is None or self.entries[number].get("is_gone"):
            return None
        record, entry = dict(self.records[number]), self.entries[number]
        if length := entry.get("text_length"):
            text = record["text"]
            if entry.get("is_changing"):
                self.fetches += 1
                text = f"Version {self.fetches}. {text}"
            record["text"] = lengthened(text, length)
        record["id"] = entry.get("id_in_fetch", record["id"])
        record["metadata"] = {"date": record.pop("date")}
        return record
