"""Writes calendars, contacts and feeds of `fixtures/samples/` with the libraries that programs write them with.

Usage: tests/samples/exports.py FOLDER, with icalendar 7.3.0, vobject 0.9.9 and feedgen 1.0.0 from PyPI. Every sample has
a sentence with a rare word in its middle, which `tests/it/readers/samples.rs` searches for.
"""

import datetime
import sys
import zoneinfo
from pathlib import Path

import icalendar
import vobject
from feedgen.feed import FeedGenerator

FOLDER = Path(sys.argv[1])
OSLO = zoneinfo.ZoneInfo("Europe/Oslo")
FILLER = "The harbour was calm in the morning, and the tide tables hung beside the door. "


def calendar():
    cal = icalendar.Calendar()
    cal.add("prodid", "-//Harbour//Plans//EN")
    cal.add("version", "2.0")
    cal.add("x-wr-calname", "Harbour plans")
    for number, (title, hour) in enumerate([("Crew briefing", 9), ("Harbour walk; with guests, and René", 14)]):
        event = icalendar.Event()
        event.add("uid", f"plan-{number}@harbour.test")
        event.add("summary", title)
        event.add("dtstamp", datetime.datetime(2026, 3, 1, 8, 0, tzinfo=datetime.timezone.utc))
        event.add("dtstart", datetime.datetime(2026, 4, 1, hour, 0, tzinfo=OSLO))
        event.add("dtend", datetime.datetime(2026, 4, 1, hour, 45, tzinfo=OSLO))
        event.add("location", "Pier 3, Oslo")
        event.add("categories", ["crew", "work, weekly"])
        event.add("description", f"{FILLER * 3}\nA capercaillie sits on the third bollard.\n{FILLER * 3}")
        person = icalendar.vCalAddress("mailto:ann@harbour.test")
        person.params["CN"] = "Berg, Ann"
        event.add("organizer", person)
        if number == 0:
            event.add("rrule", {"freq": "weekly", "count": 4})
        cal.add_component(event)
    moved = icalendar.Event()
    moved.add("uid", "plan-0@harbour.test")
    moved.add("recurrence-id", datetime.datetime(2026, 4, 8, 9, 0, tzinfo=OSLO))
    moved.add("dtstamp", datetime.datetime(2026, 3, 1, 8, 0, tzinfo=datetime.timezone.utc))
    moved.add("dtstart", datetime.datetime(2026, 4, 8, 11, 0, tzinfo=OSLO))
    moved.add("summary", "Crew briefing (moved)")
    cal.add_component(moved)
    task = icalendar.Todo()
    task.add("uid", "task-1@harbour.test")
    task.add("dtstamp", datetime.datetime(2026, 3, 1, 8, 0, tzinfo=datetime.timezone.utc))
    task.add("summary", "Paint the hull")
    task.add("due", datetime.date(2026, 5, 1))
    cal.add_component(task)
    cal.add_missing_timezones()
    (FOLDER / "plans.ics").write_bytes(cal.to_ical())


def contacts():
    cards = []
    for number, (first, last) in enumerate([("Ann", "Berg"), ("René", "Garçon"), ("Bo", "Li")]):
        card = vobject.vCard()
        card.add("n").value = vobject.vcard.Name(family=last, given=first)
        card.add("fn").value = f"{first} {last}"
        for kind in ["WORK", "HOME"]:
            email = card.add("email")
            email.value, email.type_param = f"{last.lower()}.{kind.lower()}@harbour.test", kind
        card.add("tel").value = f"+47 {number}00 00 000"
        card.add("org").value = ["Harbour, Ltd.", "Ferries"]
        card.add("adr").value = vobject.vcard.Address(street="Pier 3", city="Oslo", code="0150", country="Norway")
        card.add("bday").value = "1985-04-12"
        card.add("rev").value = "2026-04-01T10:00:00Z"
        card.add("uid").value = f"contact-{number}"
        if number == 1:
            card.add("note").value = f"{FILLER}\nKeeps a binturong; never on deck.\n{FILLER}"
        cards.append(card.serialize())
    (FOLDER / "contacts.vcf").write_text("".join(cards), encoding="utf-8", newline="")


def feeds():
    feed = FeedGenerator()
    feed.load_extension("media")
    feed.id("https://harbour.test/")
    feed.title("Harbour & fog")
    feed.link(href="https://harbour.test/", rel="alternate")
    feed.description("News of the harbour")
    feed.updated(datetime.datetime(2026, 4, 3, tzinfo=datetime.timezone.utc))
    for number in range(1, 4):
        entry = feed.add_entry()
        entry.id(f"https://harbour.test/{number}")
        entry.title(f"Notice {number}: wind < 5 & fog")
        entry.link(href=f"https://harbour.test/{number}")
        entry.author(name="Ann Berg", email="ann@harbour.test")
        entry.contributor(name="Bo Li")
        entry.category(term="weather")
        entry.published(datetime.datetime(2026, 4, number, 10, 0, tzinfo=OSLO))
        entry.updated(datetime.datetime(2026, 4, number, 12, 0, tzinfo=OSLO))
        entry.summary(f"Summary {number}")
        rare = "A kakapo blocks berth seven." if number == 2 else FILLER
        entry.content(f"<p>{FILLER * 3}</p><p>{rare}</p><p>{FILLER * 3}</p>", type="html")
        entry.media.thumbnail({"url": "https://harbour.test/a.jpg"})
    feed.rss_file(str(FOLDER / "news.rss"), pretty=True)
    feed.atom_file(str(FOLDER / "news.atom"), pretty=True)


for make in [calendar, contacts, feeds]:
    make()
