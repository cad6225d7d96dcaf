"""Writes the sample files of `fixtures/files/` with the libraries that people write such files with.

Usage: tests/samples/make.py FOLDER, with the packages of tests/samples/requirements.txt. Every sample has a sentence
with a rare word in its middle, which `tests/it/import/documents.rs` searches for.
"""

import datetime
import io
import sys
import zipfile
from pathlib import Path

FOLDER = Path(sys.argv[1])
TIME = datetime.datetime(2026, 4, 1, 10, 0, 0)
FILLER = "The harbour was calm in the morning. "


def docx():
    from docx import Document

    document = Document()
    properties = document.core_properties
    properties.title, properties.author, properties.keywords = "Ferry plan", "Ann Berg", "ferry, oslo"
    properties.created, properties.modified = TIME, TIME
    document.add_heading("Ferry plan", 0)
    document.add_paragraph(FILLER * 10)
    paragraph = document.add_paragraph("The captain keeps a ")
    paragraph.add_run("quok").bold = True
    paragraph.add_run("ka on the bridge.")
    table = document.add_table(rows=2, cols=2)
    for row, cells in enumerate([("Port", "Time"), ("Oslo", "12:00")]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    document.add_paragraph(FILLER * 10)
    document.save(FOLDER / "plan.docx")


def pptx():
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    deck.core_properties.title, deck.core_properties.author = "Ferry deck", "Ann Berg"
    deck.core_properties.created = deck.core_properties.modified = TIME
    for title, text in [("First", FILLER), ("Second", "An axolotl swims below deck."), ("Third", FILLER)]:
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
        slide.shapes.add_textbox(Inches(1), Inches(2), Inches(6), Inches(1)).text_frame.text = text
    deck.slides[1].notes_slide.notes_text_frame.text = "Mention the pangolin."
    used = deck.slide_layouts[5]
    for layout in list(deck.slide_layouts):
        if layout is not used:
            deck.slide_layouts.remove(layout)
    deck.save(FOLDER / "deck.pptx")


def xlsx():
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet.title = "Trips"
    sheet.append(["Title", "Date", "Price", "Paid", "Note"])
    sheet.append(["Oslo", datetime.date(2026, 4, 1), 120, True, "with a capybara"])
    sheet.append(["Bergen", datetime.datetime(2026, 4, 2, 12, 30), 99.5, False, None])
    sheet.append([None] * 5)
    sheet.append(["Sum", None, "=SUM(C2:C3)", None, None])
    book.create_sheet("Empty")
    other = book.create_sheet("Ports")
    other.append(["Name", "Berths"])
    other.append(["Oslo", 12])
    book.save(FOLDER / "trips.xlsx")


def ods():
    from odf.opendocument import OpenDocumentSpreadsheet
    from odf.table import Table, TableCell, TableRow
    from odf.text import P

    book = OpenDocumentSpreadsheet()
    table = Table(name="Trips")
    rows = [["Title", "Date", "Price"], ["Oslo", "2026-04-01", 120], ["Bergen", "2026-04-02", 99.5]]
    for number, cells in enumerate(rows):
        row = TableRow()
        for column, value in enumerate(cells):
            if isinstance(value, str) and column == 1 and number:
                cell = TableCell(valuetype="date", datevalue=value)
            elif isinstance(value, str):
                cell = TableCell(valuetype="string")
            else:
                cell = TableCell(valuetype="float", value=value)
            cell.addElement(P(text=str(value)))
            row.addElement(cell)
        table.addElement(row)
    rest = TableRow(numberrowsrepeated=1048000)
    rest.addElement(TableCell(numbercolumnsrepeated=1024))
    table.addElement(rest)
    book.spreadsheet.addElement(table)
    book.save(FOLDER / "trips.ods")


def odt():
    from odf import dc, meta
    from odf.opendocument import OpenDocumentText
    from odf.text import H, P

    document = OpenDocumentText()
    document.meta.addElement(dc.Title(text="Ferry letter"))
    document.meta.addElement(meta.InitialCreator(text="Ann Berg"))
    document.meta.addElement(meta.CreationDate(text="2026-04-01T10:00:00"))
    document.text.addElement(H(outlinelevel=1, text="Dear Bob"))
    document.text.addElement(P(text=FILLER))
    document.text.addElement(P(text="The wombat sends greetings."))
    document.save(FOLDER / "letter.odt")


def epub():
    from ebooklib import epub

    book = epub.EpubBook()
    book.set_identifier("urn:fetchwell:sample")
    book.set_title("The Harbour")
    book.set_language("en")
    book.add_author("Ann Berg")
    book.add_metadata("DC", "date", "2026-04-01")
    chapters = []
    for number, text in enumerate([FILLER, "A numbat reads the tide table.", FILLER]):
        chapter = epub.EpubHtml(title=f"Chapter {number + 1}", file_name=f"text/c{number}.xhtml", lang="en")
        chapter.content = f"<h1>Chapter {number + 1}</h1><p>{text}</p>"
        book.add_item(chapter)
        chapters.append(chapter)
    book.toc = chapters
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    book.spine = chapters
    epub.write_epub(FOLDER / "book.epub", book)


def pdf():
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen import canvas

    document = canvas.Canvas(str(FOLDER / "report.pdf"), pagesize=A4, pageCompression=1)
    document.setTitle("Ferry report")
    document.setAuthor("Ann Berg")
    for number, text in enumerate([FILLER, "A tapir waits at berth seven for René.", FILLER]):
        document.setFont("Helvetica-Bold", 16)
        document.drawString(72, 780, f"Page {number + 1}")
        document.setFont("Times-Roman", 11)
        document.drawString(72, 740, text)
        document.showPage()
    document.save()


def unicode_pdf():
    """A subset of an embedded font, with a map to Unicode."""
    from fpdf import FPDF

    fonts = list(Path("/usr/share/fonts").rglob("DejaVuSans.ttf"))
    if not fonts:
        return
    document = FPDF()
    document.add_page()
    document.set_title("Трап")
    document.add_font("DejaVu", fname=str(fonts[0]))
    document.set_font("DejaVu", size=14)
    document.multi_cell(0, text="Паром отходит в полдень, говорит выхухоль.")
    document.output(str(FOLDER / "unicode.pdf"))


def encrypted_pdf():
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(FOLDER / "report.pdf"))
    writer.encrypt(user_password="secret", owner_password="owner", algorithm="RC4-128")
    writer.write(FOLDER / "locked.pdf")
    # Without a password for reading: everyone may read it.
    writer = PdfWriter(clone_from=PdfReader(FOLDER / "report.pdf"))
    writer.encrypt(user_password="", owner_password="owner", algorithm="RC4-128")
    writer.write(FOLDER / "open.pdf")


def scanned_pdf():
    from fpdf import FPDF
    from PIL import Image

    picture = io.BytesIO()
    Image.new("L", (8, 8), 128).save(picture, "PNG")
    document = FPDF()
    document.add_page()
    document.image(picture, w=100)
    document.output(str(FOLDER / "scan.pdf"))


def small(path):
    """Compresses the parts of a container, and leaves out the picture of its first page and styles for Word 2007."""
    unused = ("thumbnail", "stylesWithEffects")
    with zipfile.ZipFile(path) as old:
        parts = [(info, old.read(info)) for info in old.infolist() if not any(name in info.filename for name in unused)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for info, content in parts:
            kind = zipfile.ZIP_STORED if info.filename == "mimetype" else zipfile.ZIP_DEFLATED
            fixed = zipfile.ZipInfo(info.filename, (2026, 4, 1, 10, 0, 0))
            new.writestr(fixed, content, kind, 9)


FOLDER.mkdir(parents=True, exist_ok=True)
for make in [docx, pptx, xlsx, ods, odt, epub, pdf, unicode_pdf, encrypted_pdf, scanned_pdf]:
    make()
for container in [*FOLDER.glob("*.*x"), *FOLDER.glob("*.od?"), *FOLDER.glob("*.epub")]:
    small(container)
