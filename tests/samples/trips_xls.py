"""Writes `fixtures/samples/trips.xls` with xlwt 1.3.0 from PyPI.

Usage: tests/samples/trips_xls.py FILE
"""

import datetime
import sys

import xlwt

ROWS = [
    ("Oslo", 12, 9.75, datetime.date(2026, 4, 1), datetime.time(8, 15), True),
    ("Łódź 日本", 7, 1250.5, datetime.date(2026, 4, 2), datetime.time(23, 59), False),
    ("A quokka", 3, 0.01, datetime.date(2026, 4, 3), datetime.time(0, 30), True),
]

book = xlwt.Workbook()
trips = book.add_sheet("Trips")
day = xlwt.easyxf(num_format_str="yyyy-mm-dd")
hour = xlwt.easyxf(num_format_str="h:mm")
for column, name in enumerate(["Ferry", "Guests", "Price", "Day", "Hour", "Open"]):
    trips.write(0, column, name)
for number, row in enumerate(ROWS, 1):
    for column, (value, style) in enumerate(zip(row, [None, None, None, day, hour, None])):
        trips.write(number, column, value, *([style] if style else []))
trips.write(4, 0, "Sum")
trips.write(4, 1, xlwt.Formula("SUM(B2:B4)"))
notes = book.add_sheet("Notes")
for column, name in enumerate(["Topic", "Text"]):
    notes.write(0, column, name)
notes.write(1, 0, "Tide")
# Longer than a record.
notes.write(1, 1, "x" * 9000 + " numbat")
notes.write(2, 0, "Wind")
notes.write_rich_text(2, 1, (("bold ", xlwt.easyfont("bold on")), "plain"))
book.save(sys.argv[1])
