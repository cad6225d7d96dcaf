"""Reads files with other programs, one for each kind of file.

Each function takes a path and returns a `Reading`: the texts of a file, its titles and the times that records begin with.
"""

import dataclasses
import datetime
import email
import email.policy
import email.utils
import html.parser
import logging
import re
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)


@dataclasses.dataclass
class Reading:
    """The content of a file. `titles` and `times` are empty where the reader has none. Of each of `choices`, a list of lists of
    texts, one list belongs to the file. Words of `permitted` may be in records."""

    texts: list = dataclasses.field(default_factory=list)
    titles: list = dataclasses.field(default_factory=list)
    times: list = dataclasses.field(default_factory=list)
    choices: list = dataclasses.field(default_factory=list)
    permitted: list = dataclasses.field(default_factory=list)


class Html(html.parser.HTMLParser):
    """The text of a page without scripts and styles."""

    def __init__(self):
        super().__init__()
        self.hidden, self.texts = 0, []

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("script", "style", "title")
        self.texts.append(" " if tag not in ("b", "i", "em", "strong", "span", "a", "font", "u", "sup", "sub", "small") else "")

    def handle_endtag(self, tag):
        self.hidden -= self.hidden > 0 and tag in ("script", "style", "title")
        self.texts.append("" if tag in ("b", "i", "em", "strong", "span", "a", "font", "u", "sup", "sub", "small") else " ")

    def handle_data(self, data):
        if not self.hidden:
            self.texts.append(data)


def html_text(page):
    """Returns the text of a web page."""
    parser = Html()
    parser.feed(page)
    parser.close()
    return "".join(parser.texts)


def mail(path):
    """Reads a message with Python's `email`: texts of all parts, the subject, the date."""
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    reading = Reading()
    add_part(message, reading.texts, reading)
    for part in message.walk():
        if part.get_content_type() == "message/rfc822":
            reading.permitted += ["Forwarded message"] + [f"{name} {value}" for inner in part.get_payload() for name, value in inner.items()]
    if message["subject"]:
        reading.titles.append(str(message["subject"]))
    try:
        sent = email.utils.parsedate_to_datetime(str(message["date"]))
        reading.times.append(sent if sent.tzinfo else sent.replace(tzinfo=datetime.timezone.utc))
    except (TypeError, ValueError, IndexError):
        pass
    return reading


def add_part(part, texts, reading):
    """Adds the texts of a part to a list. Alternatives become a choice."""
    if part.get_content_type() == "multipart/alternative" and part.is_multipart():
        reading.choices.append([])
        for alternative in part.get_payload():
            reading.choices[-1].append([])
            add_part(alternative, reading.choices[-1][-1], reading)
    elif part.is_multipart():
        for inner in part.get_payload():
            add_part(inner, texts, reading)
    elif part.get_content_maintype() == "text":
        text = part.get_payload(decode=True)
        try:
            text = part.get_content()
        except (LookupError, ValueError, AttributeError, KeyError):
            text = (text or b"").decode("utf-8", "replace")
        texts.append(html_text(text) if part.get_content_subtype() == "html" else text)


def msg(path):
    """Reads a message of Outlook with extract-msg."""
    import extract_msg
    message = extract_msg.openMsg(str(path))
    reading = Reading([message.body or ""])
    if getattr(message, "subject", None):
        reading.titles.append(message.subject)
    if getattr(message, "date", None):
        sent = message.date
        reading.times.append(email.utils.parsedate_to_datetime(sent) if isinstance(sent, str) else sent)
    return reading


def docx(path):
    """Reads a document of Word with python-docx: the text of the document and its headers, footers, notes and comments."""
    import docx as library
    document = library.Document(str(path))
    reading = Reading()
    for part in document.part.package.iter_parts():
        if re.search(r"(document\.main|template\.main|header|footer|footnotes|endnotes|comments)\+xml$", part.content_type):
            element = getattr(part, "element", None)
            if element is None:
                import lxml.etree
                element = lxml.etree.fromstring(part.blob)
            # A fallback repeats the text of its alternative.
            for paragraph in element.iter("{*}p"):
                names = ("t", "tab", "br", "cr", "noBreakHyphen")
                pieces = [node for node in paragraph.iter() if isinstance(node.tag, str) and node.tag.rsplit("}", 1)[-1] in names]
                reading.texts.append("".join((node.text or "") if node.tag.endswith("}t") else "-" if "Hyphen" in node.tag else " " for node in pieces))
    if document.core_properties.title:
        reading.titles.append(document.core_properties.title)
    return reading


def pptx(path):
    """Reads a presentation with python-pptx: shapes, tables and notes."""
    import pptx as library
    presentation = library.Presentation(str(path))
    reading = Reading()

    def read(shapes):
        for shape in shapes:
            if shape.shape_type == 6:
                read(shape.shapes)
            if shape.has_text_frame:
                reading.texts.append(shape.text_frame.text)
            if getattr(shape, "has_table", False) and shape.has_table:
                reading.texts += [cell.text_frame.text for row in shape.table.rows for cell in row.cells]

    for slide in presentation.slides:
        read(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            reading.texts.append(slide.notes_slide.notes_text_frame.text)
    if presentation.core_properties.title:
        reading.titles.append(presentation.core_properties.title)
    return reading


def xlsx(path):
    """Reads a workbook with openpyxl: the texts and numbers of its cells, and names of sheets."""
    import openpyxl
    book = openpyxl.load_workbook(path, data_only=True)
    cells = [cell for sheet in book.worksheets for row in sheet.iter_rows(values_only=True) for cell in row]
    return Reading([cell_text(cell) for cell in cells if cell is not None])


def xls(path):
    """Reads a workbook of Excel 97 with xlrd."""
    import xlrd
    book = xlrd.open_workbook(str(path), logfile=open("/dev/null", "w"))
    cells = [cell for sheet in book.sheets() for row in sheet.get_rows() for cell in row]
    kinds = (xlrd.XL_CELL_TEXT, xlrd.XL_CELL_NUMBER)
    return Reading([cell_text(cell.value) for cell in cells if cell.ctype in kinds])


def cell_text(value):
    """Returns a cell as text: times and truth values, whose form is free, are left out."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return ""


def odf(path):
    """Reads an OpenDocument file with odfdo."""
    import odfdo
    document = odfdo.Document(path)
    reading = Reading()
    for paragraph in document.body.xpath("//text:p | //text:h"):
        pieces = paragraph._xml_element.xpath(".//text() | .//*[local-name()='s' or local-name()='tab' or local-name()='line-break']")
        reading.texts.append("".join(piece if isinstance(piece, str) else " " for piece in pieces))
    title = document.get_part("meta.xml").get_title()
    reading.titles += [title] if title else []
    return reading


def pdf(path):
    """Reads a PDF document with PDFium."""
    import pypdfium2
    document = pypdfium2.PdfDocument(path)
    reading = Reading([page.get_textpage().get_text_bounded() for page in document])
    title = document.get_metadata_dict().get("Title")
    reading.titles += [title] if title else []
    return reading


def epub(path):
    """Reads a book with EbookLib."""
    import ebooklib
    from ebooklib import epub as library
    book = library.read_epub(str(path), {"ignore_ncx": True})
    pages = [item.get_content().decode("utf-8", "replace") for item in book.get_items_of_type(ebooklib.ITEM_DOCUMENT)]
    return Reading([html_text(page) for page in pages], [title for title, _ in book.get_metadata("DC", "title")][:1])


def calendar(path):
    """Reads a calendar with icalendar: summaries, descriptions, places, and when events begin."""
    import icalendar
    reading = Reading()
    for part in icalendar.Calendar.from_ical(path.read_bytes(), multiple=True):
        for event in part.walk():
            if event.name in ("VEVENT", "VTODO", "VJOURNAL"):
                reading.texts += [str(event[name]) for name in ("SUMMARY", "DESCRIPTION", "LOCATION") if name in event]
                reading.titles += [str(event["SUMMARY"])] if "SUMMARY" in event else []
                if "DTSTART" in event and not isinstance(event["DTSTART"], list):
                    reading.times.append(event["DTSTART"].dt)
    return reading


def contacts(path):
    """Reads contacts with vobject: names, addresses and notes."""
    import vobject
    reading = Reading()
    for card in vobject.readComponents(path.read_bytes().decode("utf-8", "replace")):
        for name in ("fn", "email", "note", "title", "nickname"):
            values = [str(line.value) for line in card.contents.get(name, [])]
            reading.texts += values
            reading.titles += values[:1] if name == "fn" else []
    return reading


def notebook(path):
    """Reads a notebook with nbformat: the sources of its cells, and the texts and errors of outputs."""
    import nbformat
    content = nbformat.read(path, as_version=4)
    metadata = content["metadata"]
    languages = [metadata.get("language_info", {}).get("name", ""), metadata.get("kernelspec", {}).get("language", "")]
    reading = Reading([cell["source"] for cell in content["cells"]], permitted=languages)
    for output in (output for cell in content["cells"] for output in cell.get("outputs", [])):
        data = output.get("data", {})
        shown = [output.get("text"), data.get("text/markdown", data.get("text/plain")), output.get("ename"), output.get("evalue")]
        reading.texts += [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text) for text in shown if isinstance(text, str)]
    return reading


def rtf(path):
    """Reads an RTF document with striprtf."""
    from striprtf.striprtf import rtf_to_text
    return Reading([rtf_to_text(path.read_bytes().decode("latin-1"), errors="ignore")])


def subtitles(path):
    """Reads subtitles with webvtt-py."""
    import webvtt
    captions = webvtt.from_srt(str(path)) if path.suffix == ".srt" else webvtt.read(str(path))
    return Reading([caption.text for caption in captions])


def program(*command):
    """Returns a function that reads a file with a program."""
    def read(path):
        output = subprocess.run([*command, str(path)], capture_output=True, timeout=60, check=True)
        return Reading([re.sub(r"\[pic\]", "", output.stdout.decode("utf-8", "replace"))])
    return read


READERS = {
    "mail": ("Python's `email`", mail), "msg": ("extract-msg", msg), "docx": ("python-docx", docx), "pptx": ("python-pptx", pptx),
    "xlsx": ("openpyxl", xlsx), "xls": ("xlrd", xls), "odf": ("odfdo", odf), "pdf": ("PDFium", pdf), "epub": ("EbookLib", epub),
    "calendar": ("icalendar", calendar), "contacts": ("vobject", contacts), "notebook": ("nbformat", notebook),
    "rtf": ("striprtf", rtf), "subtitles": ("webvtt-py", subtitles),
    "doc": ("antiword", program("antiword", "-m", "UTF-8.txt", "-w", "0")), "ppt": ("catppt", program("catppt", "-d", "utf-8")),
}


def main():
    """Reads the files that standard input names, a line each, and prints a JSON object for each."""
    import json
    import pathlib
    folder = pathlib.Path(sys.argv[1])
    for line in sys.stdin:
        name = line.rstrip("\n")
        try:
            reading = READERS[name.split("/", 1)[0]][1](folder / name)
            answer = {**dataclasses.asdict(reading), "times": [str(time) for time in reading.times]}
        except Exception as error:  # Any reader may fail on damaged files.
            answer = {"failed": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps({"file": name, **answer}), flush=True)


if __name__ == "__main__":
    main()
