"""Writes a mailbox of the messages that Python tests its e-mail package with, and the texts that Python reads in them.

Usage: mailbox.py MAILBOX EXPECTED. MAILBOX is an mbox file. EXPECTED is JSON: for each message its file, its subject, and
from each of its texts the line in the middle, with the kind of the text.
"""

import email
import email.policy
import json
import pathlib
import sys

import test.test_email

FOLDER = pathlib.Path(test.test_email.__file__).parent / "data"


def middle(text):
    """Returns the words of the line in the middle of those with at least four words."""
    lines = [line.split() for line in text.splitlines()]
    lines = [line for line in lines if len(line) > 3 and not any("<" in word or "&" in word for word in line)]
    return " ".join(lines[len(lines) // 2]) if lines else None


def texts(message):
    kinds = [part.get_content_type() for part in message.walk()]
    for part in message.walk():
        if part.is_multipart() or part.get_content_maintype() != "text":
            continue
        try:
            text = middle(part.get_content())
        except (LookupError, UnicodeError, KeyError):
            continue
        if text:
            forwarded = "message/rfc822" in kinds or "multipart/digest" in kinds
            yield {"kind": part.get_content_type() + (" forwarded" if forwarded else ""), "text": text}


def main(mailbox, expected):
    found = []
    with open(mailbox, "wb") as output:
        for file in sorted(FOLDER.glob("msg_*.txt")):
            raw = file.read_bytes().replace(b"\r\n", b"\n")
            if raw.startswith(b"From "):
                raw = raw.split(b"\n", 1)[1]
            output.write(b"From nobody Thu Jan  1 00:00:00 1970\n")
            output.write(b"".join(b">" + line if line.lstrip(b">").startswith(b"From ") else line
                                  for line in raw.splitlines(keepends=True)))
            output.write(b"\n\n")
            message = email.message_from_bytes(raw, policy=email.policy.default)
            subject = message["subject"]
            found.append({"file": file.name, "subject": subject and " ".join(str(subject).split()),
                          "texts": list(texts(message))})
    pathlib.Path(expected).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
