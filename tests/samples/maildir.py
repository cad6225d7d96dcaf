"""Writes a Maildir and an archive of Google Takeout, as programs do with Python's `mailbox`.

Usage: maildir.py MAILDIR ARCHIVE. The Maildir has the folder `Sent`, the archive the mailbox of all mail.
"""

import email.message
import mailbox
import sys
import tempfile
import zipfile
from pathlib import Path

FILLER = "The harbour was calm in the morning, and the tide tables hung beside the door.\n" * 4


def message(number, subject, sentence):
    text = email.message.EmailMessage()
    text["From"], text["To"] = "Zoë Berg <zoe@harbour.test>", "bo@harbour.test"
    text["Subject"] = subject
    text["Date"] = f"Wed, 0{number} Apr 2026 10:00:00 +0200"
    text["Message-ID"] = f"<m{number}@harbour.test>"
    text.set_content(f"{FILLER}{sentence}\n{FILLER}")
    text.add_attachment(b"\x00\x01", maintype="application", subtype="octet-stream", filename="tide.bin")
    return text


def maildir(path):
    box = mailbox.Maildir(path)
    box.add(message(1, "Unread: René", "A pademelon waits on the quay."))
    seen = mailbox.MaildirMessage(message(2, "Seen", "The second one was read."))
    seen.set_subdir("cur")
    seen.set_flags("FS")
    box.add(seen)
    sent = mailbox.MaildirMessage(message(3, "Sent", "The third one went out."))
    sent.set_subdir("cur")
    sent.set_flags("S")
    box.add_folder("Sent").add(sent)


def takeout(path):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "All mail.mbox"
        box = mailbox.mbox(file)
        for number, labels in [(4, "Inbox,Important,Ferry trips"), (5, "=?UTF-8?Q?Gesendet,M=C3=B6wen?=")]:
            mail = mailbox.mboxMessage(message(number, f"Takeout {number}", "From the mast, a caracara calls."))
            mail["X-GM-THRID"], mail["X-Gmail-Labels"] = "1794000000000000001", labels
            mail.set_from("1794000000000000001@xxx", (2026, 4, number, 10, 0, 0, 2, 91, 0))
            box.add(mail)
        box.close()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(file, "Takeout/Mail/All mail Including Spam and Trash.mbox")
            archive.writestr("Takeout/archive_browser.html", "<html><title>Archive</title><p>Your caracara export</html>")
            archive.writestr("Takeout/Mail/User Settings/Blocked Addresses.json", '{"blocked": []}')


maildir(sys.argv[1])
takeout(sys.argv[2])
