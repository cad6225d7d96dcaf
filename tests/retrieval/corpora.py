"""Reads human-written text that packages of a build machine ship, as items with a summary and the text that follows it.

* rustdoc: doc comments of the crates in Cargo's registry folder (first sentence, the rest)
* manual: manual pages in all installed languages (NAME line, the sections after SYNOPSIS)
* history: commits of this repository (subject, message), sections of Markdown files of crates and npm packages (heading,
  section) and entries of Debian changelogs (author, date)

Every item names its project, so that sets can be split by project.
"""

import gzip
import os
import re
import subprocess
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path

MAX_CHARS = 3000
"""Maximum length of a text in characters. Longer ones are truncated at a line."""

MIN_WORDS = 25
"""Minimum number of words of a text after its summary."""


@dataclass
class Item:
    """A text with its summary."""

    stream: str
    project: str
    origin: str
    title: str
    summary: str
    text: str
    language: str = "en"
    author: str = ""
    date: str = ""
    fields: dict = field(default_factory=dict)


def project_of(name):
    """Returns the family of a package name: `tokio` for `tokio-util`."""
    return re.split(r"[-_.:+]", name.lower())[0] or name.lower()


def truncate(text):
    """Truncates a text at a line."""
    if len(text) <= MAX_CHARS:
        return text
    return text[:MAX_CHARS].rsplit("\n", 1)[0]


def first_sentence(text):
    """Splits a paragraph into its first sentence and the rest."""
    paragraph, _, rest = text.partition("\n\n")
    found = re.match(r"(.+?[.!?。])(?:\s+(?=[A-Z`\[(])|\Z)", paragraph, re.S)
    if not found:
        return paragraph.strip(), rest.strip()
    sentence = found.group(1)
    after = paragraph[found.end():].strip()
    return sentence.strip(), "\n\n".join(part for part in (after, rest.strip()) if part)


def plain_markdown(text):
    """Removes links and marks of emphasis from a summary."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", text)
    text = re.sub(r"\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])?", r"\1", text)
    text = re.sub(r"https?://\S+", " ", re.sub(r"<[^>]+>", " ", text))
    return " ".join(re.sub(r"[`*#<>]", "", text).split())


# --- Rust doc comments ---

ITEM = re.compile(
    r"^(?:pub(?:\([^)]*\))?\s+)?(?:default\s+|async\s+|const\s+|unsafe\s+|extern\s+\"\w+\"\s+)*"
    r"(fn|struct|enum|trait|type|static|const|mod|union|macro_rules!)\s+(\w+)"
)


def locked_crates(lock):
    """Returns the names with versions of the packages of a `Cargo.lock`."""
    return set(map("-".join, re.findall(r'^name = "(.+)"\nversion = "(.+)"$', Path(lock).read_text(), re.M)))


def newest_crates(registry, lock=None):
    """Returns one folder for each crate: the last in the order of names. With `lock`, only the crates of that file."""
    locked, crates = locked_crates(lock) if lock else None, {}
    for index in sorted(Path(registry).iterdir()):
        for folder in sorted(path for path in index.iterdir() if path.is_dir()):
            found = re.match(r"(.+?)-(\d+\.\d+.*)$", folder.name)
            if found and (locked is None or folder.name in locked):
                crates[found.group(1)] = (found.group(2), folder)
    return [(name, version, folder) for name, (version, folder) in sorted(crates.items())]


def crate_author(folder):
    """Returns the first author of a crate's manifest."""
    try:
        manifest = (folder / "Cargo.toml").read_text(errors="replace")
    except OSError:
        return ""
    found = re.search(r'^authors\s*=\s*\[\s*"([^"<]+)', manifest, re.M)
    return found.group(1).strip() if found else ""


def rustdoc(registry, per_crate=60, lock=None):
    """Yields the doc comments of crates."""
    for name, version, folder in newest_crates(registry, lock):
        author, count = crate_author(folder), 0
        for path in sorted(folder.rglob("*.rs")):
            if count >= per_crate:
                break
            try:
                source = path.read_text()
            except (OSError, UnicodeDecodeError):
                continue
            if len(source) > 2_000_000:
                continue
            for title, doc in doc_comments(source):
                summary, rest = first_sentence(doc)
                summary, rest = plain_markdown(summary), truncate(rest)
                if not 4 <= len(summary.split()) <= 30 or len(rest.split()) < MIN_WORDS:
                    continue
                yield Item(
                    "items", project_of(name), f"{name}/{path.relative_to(folder)}", title, summary, rest,
                    author=author,
                    fields={"crate": name, "version": version, "path": str(path.relative_to(folder))},
                )
                count += 1
                if count >= per_crate:
                    break


def doc_comments(source):
    """Yields the name and the doc comment of each documented item of a source file."""
    lines = []
    for line in source.splitlines():
        stripped = line.strip()
        if stripped.startswith("///") and not stripped.startswith("////"):
            lines.append(stripped[3:].removeprefix(" "))
        elif lines and (stripped.startswith("#[") or stripped.startswith(")]") or not stripped):
            continue
        elif lines:
            found = ITEM.match(stripped)
            if found:
                kept = (text for text in lines if not text.startswith("# ") and not text.startswith("```"))
                yield found.group(2), "\n".join(kept).strip()
            lines = []


# --- Manual pages ---

ESCAPES = [
    (re.compile(r"\\f(\[[^\]]*\]|\(..|.)"), ""),
    (re.compile(r"\\s[-+]?\d"), ""),
    (re.compile(r"\\\*\[[^\]]*\]|\\\*\(..|\\\*."), ""),
    (re.compile(r"\\\((?:lq|rq|dq)|\\\[(?:lq|rq|dq)\]"), '"'),
    (re.compile(r"\\\((?:aq|cq|oq)|\\\[(?:aq|cq|oq)\]"), "'"),
    (re.compile(r"\\\((?:em|en|hy|mi)|\\\[(?:em|en|hy|mi)\]"), "-"),
    (re.compile(r"\\\(ti|\\\[ti\]"), "~"),
    (re.compile(r"\\\(ha|\\\[ha\]"), "^"),
    (re.compile(r"\\\(bu|\\\[bu\]"), "*"),
    (re.compile(r"\\\(..|\\\[[^\]]*\]"), ""),
    (re.compile(r"\\[&|^:%/,)cpz]"), ""),
    (re.compile(r"\\[ 0~]"), " "),
    (re.compile(r"\\e|\\\\"), "\\\\"),
    (re.compile(r'\\".*$'), ""),
    (re.compile(r"\\([-.'`_])"), r"\1"),
]

TEXT_MACROS = {"B", "I", "BR", "BI", "IR", "IB", "RB", "RI", "SM", "SB", "Nm", "Ar", "Fl", "Cm", "Pa", "Xr", "Em", "Sy",
               "Dv", "Ev", "Va", "Vt", "Fn", "Fa", "Li", "Ql", "Dq", "Sq", "Op", "It", "TP", "IP", "Ic", "Er", "Nd"}


def unescape(text):
    """Removes the escapes of roff."""
    for pattern, replacement in ESCAPES:
        text = pattern.sub(replacement, text)
    return text


def page_sections(source):
    """Returns the header arguments, and the sections of a manual page as pairs of name and text."""
    header, sections = [], []
    for line in source.splitlines():
        if line.startswith((".\\\"", "'\\\"")):
            continue
        if not line.startswith((".", "'")):
            if sections:
                sections[-1][1].append(unescape(line))
            continue
        macro, _, rest = line[1:].strip().partition(" ")
        arguments = [quoted or word for quoted, word in re.findall(r'"([^"]*)"|(\S+)', rest)]
        if macro in ("TH", "Dd"):
            header = header or arguments
        elif macro in ("SH", "Sh"):
            sections.append((unescape(" ".join(arguments)), []))
        elif not sections:
            continue
        elif macro in TEXT_MACROS:
            glue = "" if macro in ("BR", "BI", "IR", "IB", "RB", "RI") else " "
            prefix = "- " if macro == "Nd" else ""
            if macro == "IP":
                arguments = arguments[:1]
            sections[-1][1].append(prefix + unescape(glue.join(arguments)))
        elif macro in ("SS", "Ss"):
            sections[-1][1].extend(["", unescape(" ".join(arguments)), ""])
        elif macro in ("PP", "P", "LP", "Pp", "sp"):
            sections[-1][1].append("")
    return header, [(name, re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()) for name, lines in sections]


MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december"]


def day_of(texts):
    """Returns the first date of a page's header as YYYY-MM-DD."""
    for text in texts:
        found = re.search(r"((?:19|20)\d\d)-(\d\d)-(\d\d)", text)
        if found:
            return "-".join(found.groups())
        found = re.match(r"\$Mdocdate: (\w+) (\d+) (\d{4})", text) or re.match(r"(\w+) (\d{1,2}),? (\d{4})", text)
        if found and found.group(1).lower() in MONTHS:
            return f"{found.group(3)}-{MONTHS.index(found.group(1).lower()) + 1:02}-{int(found.group(2)):02}"
    return ""


def manual(root="/usr/share/man", per_project=150):
    """Yields manual pages of all installed languages."""
    counts = {}
    for folder, _, names in sorted(os.walk(root)):
        part = Path(folder).relative_to(root).parts
        if not part or not part[-1].startswith("man"):
            continue
        language = part[0] if len(part) > 1 else "en"
        for name in sorted(names):
            path = Path(folder) / name
            stem = re.sub(r"(\.\d\w*)?(\.gz)?$", "", name)
            project = project_of(stem)
            if path.is_symlink() or counts.get((project, language), 0) >= per_project:
                continue
            try:
                data = path.read_bytes()
                source = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
            except (OSError, UnicodeDecodeError, gzip.BadGzipFile):
                continue
            header, sections = page_sections(source)
            if len(sections) < 3:
                continue
            named = re.sub(r"\s+", " ", sections[0][1])
            found = re.match(r"(.+?)\s+(?:-+|–|—)\s+(.+)$", named)
            text = truncate("\n\n".join(f"{title}\n{body}" for title, body in sections[2:]))
            if not found or not text:
                continue
            spaced = language not in ("ja", "zh_CN", "zh_TW")
            summary = found.group(2).strip()
            if spaced and (not 4 <= len(summary.split()) <= 30 or len(text.split()) < MIN_WORDS):
                continue
            counts[project, language] = counts.get((project, language), 0) + 1
            day = day_of(header)
            yield Item(
                "pages", project, f"{language}/{name}", stem, summary, text, language=language, date=day,
                fields={"section": part[-1][3:], "language": language},
            )


# --- Commits, Markdown sections and changelogs ---


def commits(repository):
    """Yields the commits of a repository that have a message after their subject."""
    form = "%H%x1f%an%x1f%aI%x1f%s%x1f%b%x1e"
    command = ["git", "-C", str(repository), "log", "--no-merges", f"--format={form}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    name = "this-repository"
    for entry in done.stdout.split("\x1e"):
        parts = entry.strip("\n").split("\x1f")
        if len(parts) != 5:
            continue
        digest, author, when, subject, body = parts
        body = "\n".join(line for line in body.splitlines() if not re.match(r"[A-Z][\w-]+-[Bb]y: ", line)).strip()
        if len(body.split()) < 12 or len(subject.split()) < 3:
            continue
        yield Item(
            "commits", name, digest, "", subject, truncate(body), author=author, date=when,
            fields={"commit": digest},
        )


def sections_of(markdown):
    """Yields the headings of a Markdown text with their sections."""
    heading, lines, fenced = None, [], False
    for line in markdown.splitlines() + ["# "]:
        fenced ^= line.lstrip().startswith("```")
        found = None if fenced else re.match(r"#{1,4}\s*(.*?)\s*#*$", line)
        if not found:
            lines.append(line)
            continue
        if heading is not None:
            yield heading, "\n".join(lines).strip()
        heading, lines = plain_markdown(found.group(1)), []


def markdown(roots, per_project=60):
    """Yields the sections of Markdown files. A root is a folder of packages with the function that names them."""
    counts = {}
    for root, package_of in roots:
        for path in sorted(Path(root).rglob("*.md")):
            if "/." in str(path.relative_to(root)) or not path.is_file() or path.stat().st_size > 400_000:
                continue
            package = package_of(path.relative_to(root).parts)
            project = project_of(package)
            try:
                text = path.read_text()
            except (OSError, UnicodeDecodeError):
                continue
            for heading, section in sections_of(text):
                if len(section.split()) < MIN_WORDS or counts.get(project, 0) >= per_project or not heading:
                    continue
                counts[project] = counts.get(project, 0) + 1
                found = re.search(r"((?:19|20)\d\d-\d\d-\d\d)", heading)
                yield Item(
                    "sections", project, f"{package}/{path.name}", path.name, heading, truncate(section),
                    date=found.group(1) if found else "",
                    fields={"package": package, "path": "/".join(path.relative_to(root).parts[-3:])},
                )


def changelogs(root="/usr/share/doc", per_package=12):
    """Yields the entries of Debian changelogs."""
    for path in sorted(Path(root).glob("*/changelog.Debian*.gz")):
        if path.is_symlink() or path.parent.is_symlink():
            continue
        try:
            text = gzip.decompress(path.read_bytes()).decode()
        except (OSError, UnicodeDecodeError, gzip.BadGzipFile):
            continue
        count = 0
        for head, body, author, when in re.findall(
            r"^(\S.*?\([^)]+\)).*?\n(.*?)^ -- ([^<\n]+?)\s*<[^>]*>\s+(.+?)$", text, re.M | re.S
        ):
            body = re.sub(r"^ {2}", "", body, flags=re.M).strip()
            if len(body.split()) < MIN_WORDS:
                continue
            try:
                day = parsedate_to_datetime(when).isoformat()
            except (TypeError, ValueError):
                continue
            yield Item(
                "releases", project_of(path.parent.name), str(path.parent.name), head, "", truncate(body),
                author=author, date=day, fields={"package": path.parent.name},
            )
            count += 1
            if count >= per_package:
                break


def history(repository, registry):
    """Yields commits, Markdown sections and changelog entries."""
    yield from commits(repository)
    roots = []
    for index in sorted(Path(registry).iterdir()):
        roots.append((index, lambda parts: re.sub(r"-\d+\.\d+.*$", "", parts[0])))
    for folder in ("/usr/lib/node_modules/npm/node_modules", "/usr/share/nodejs", "/usr/share/doc/nodejs"):
        if Path(folder).is_dir():
            roots.append((folder, lambda parts: parts[1] if parts[0].startswith("@") and len(parts) > 1 else parts[0]))
    yield from markdown(roots)
    yield from changelogs()
