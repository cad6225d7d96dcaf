"""Collects files of known kinds from packages: source distributions of PyPI and crates of crates.io.

`collect` writes each file once to FOLDER/KIND/PACKAGE, with its path in one name, and returns the names by kind.
"""

import collections
import hashlib
import tarfile
import zipfile

MAX_OF_A_PACKAGE = 100
"""Maximum number of files of one kind from one package. Those with the lowest hash of their names are taken."""

MAX_BYTES = 4 * 1024 * 1024

EXTENSIONS = {
    "mail": ["eml"], "msg": ["msg"], "docx": ["docx"], "pptx": ["pptx"], "xlsx": ["xlsx"], "doc": ["doc"], "ppt": ["ppt"],
    "xls": ["xls"], "odf": ["odt", "odp", "ods"], "pdf": ["pdf"], "epub": ["epub"], "calendar": ["ics"], "contacts": ["vcf"],
    "notebook": ["ipynb"], "rtf": ["rtf"], "subtitles": ["srt", "vtt"],
}

MAIL_WITHOUT_EXTENSION = ["flufl_bounce-6.0.0/tests/data/", "mail_parser-4.8.0/tests/mails/"]
"""Folders of which each file is a message."""

KINDS = {extension: kind for kind, extensions in EXTENSIONS.items() for extension in extensions}


def entries(path):
    """Yields the names and contents of the files of an archive."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir() and entry.file_size <= MAX_BYTES:
                    yield entry.filename, archive.read(entry)
    else:
        with tarfile.open(path) as archive:
            for entry in archive:
                if entry.isfile() and entry.size <= MAX_BYTES:
                    yield entry.name, archive.extractfile(entry).read()


def kind_of(name):
    """Returns the kind of a file by its name, and its name with an extension."""
    if any(name.startswith(folder) for folder in MAIL_WITHOUT_EXTENSION) and not name.endswith((".py", ".md")):
        return "mail", name if name.endswith(".eml") else f"{name}.eml"
    return KINDS.get(name.rsplit(".", 1)[-1].lower()), name


def collect(packages, folder):
    """Writes the files of the packages, equal ones once."""
    found, contents = collections.defaultdict(list), set()
    for package in sorted(packages):
        for name, content in entries(package):
            kind, name = kind_of(name)
            if kind and content:
                found[kind, name.split("/", 1)[0]].append((hashlib.sha256(name.encode()).digest(), name, content))
    names = collections.defaultdict(list)
    for (kind, package), files in sorted(found.items()):
        for _, name, content in sorted(files)[:MAX_OF_A_PACKAGE]:
            digest = hashlib.sha256(content).digest()
            if digest in contents:
                continue
            contents.add(digest)
            flat = f"{kind}/{package}/" + name.split("/", 1)[1].replace("/", "__")
            (folder / flat).parent.mkdir(parents=True, exist_ok=True)
            (folder / flat).write_bytes(content)
            names[kind].append(flat)
    return names
