"""Writes a folder of mixed files, most of them damaged, for a run of `fetchwell import files`.

Usage: tests/samples/mixed.py FOLDER COUNT. Files are copies of `fixtures/files/` and of small texts: whole, cut,
with changed bytes, or under another name. The same arguments always write the same files.
"""

import gzip
import io
import random
import sys
import tarfile
import zipfile
from pathlib import Path

FOLDER, COUNT = Path(sys.argv[1]), int(sys.argv[2])
RANDOM = random.Random(18)
SAMPLES = Path(__file__).resolve().parents[2] / "fixtures" / "files"
MAIL = "From: a@x.test\nTo: b@x.test\nSubject: s\nMessage-ID: <%d@x.test>\n\ntext of %d\n"

TEXTS = {
    "note.md": "---\ntags: [a]\n---\n# Title\nbody",
    "text.txt": "some text " * 200,
    "page.html": "<!doctype html><title>t</title><p>one<div>two" * 20,
    "day.ics": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nSUMMARY:s\nDTSTART:20260401\nEND:VEVENT\nEND:VCALENDAR\n",
    "card.vcf": "BEGIN:VCARD\nFN:Ann\nEMAIL:a@x\nEND:VCARD\n",
    "news.rss": "<rss><channel><title>t</title><item><title>x</title><guid>1</guid></item></channel></rss>",
    "chat.json": '[{"uuid": "u", "name": "n", "chat_messages": [{"sender": "human", "text": "x"}]}]',
}


def contents():
    files = [(path.name, path.read_bytes()) for path in sorted(SAMPLES.iterdir())]
    files += [(name, text.encode()) for name, text in TEXTS.items()]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files[:6]:
            archive.writestr(name, content)
    files.append(("all.zip", packed.getvalue()))
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files[:6]:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    files.append(("all.tar.gz", gzip.compress(packed.getvalue())))
    return files


def damaged(content):
    """Returns the content whole, cut, or with changed bytes."""
    kind = RANDOM.randrange(3)
    if kind == 1:
        return content[: RANDOM.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(RANDOM.randrange(1, 40) if kind == 2 else 0):
        changed[RANDOM.randrange(len(changed))] = RANDOM.randrange(256)
    return bytes(changed)


FILES = contents()
ENDINGS = [name.split(".", 1)[1] for name, _ in FILES] + ["jpg", "bin"]
for number in range(COUNT):
    name, content = RANDOM.choice(FILES + [("mail.eml", (MAIL % (number, number)).encode())])
    if RANDOM.randrange(10) == 0:
        name = "wrong." + RANDOM.choice(ENDINGS)
    folder = FOLDER / f"{number // 100}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}-{name}").write_bytes(damaged(content))
