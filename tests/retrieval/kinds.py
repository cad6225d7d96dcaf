"""Makes labelled questions of the kinds in `KINDS` from records.

Each function of `KINDS` takes a `Corpus` and a random generator and yields questions without an end; `questions` takes as
many of each as are asked for. A question that several records answer equally has all of them as relevant, or is dropped
if they are more than `MAX_RELEVANT`.
"""

import hashlib
import itertools
import json
import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

MAX_RELEVANT = 3
"""Maximum number of records that answer a question."""

MIN_SHARE = 2
"""A kind with less than one in `MIN_SHARE` of the questions asked for is left out: it would count as much as others."""

MAX_TRIES = 4000
"""Maximum number of records that a kind is tried on."""

WORD = re.compile(r"[^\W_]+")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{4,}|[\uac00-\ud7af]+(?: [\uac00-\ud7af]+)+")
CAMEL = re.compile(r"\b(?:[a-z]{3,}|[A-Z][a-z]{2,})(?:[A-Z][a-z]{2,})+\b")
IDENTIFIERS = [
    re.compile(r"(?<![\w/.-])(?:[\w.@-]+/){2,}[\w.-]*\w"),
    re.compile(r"(?<![\w/.-])/(?:[\w.-]+/)+[\w.-]*\w"),
    re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+){1,}\b"),
    re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b"),
    re.compile(r"\b[0-9a-f]{7,40}\b"),
    re.compile(r"(?<![\w.-])v?\d+\.\d+\.\d+(?:-[\w.]+)?(?![\w.])"),
    re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)+\b"),
    re.compile(r"\b\w+(?:::\w+)+\b"),
    re.compile(r"(?<!\w)#\d{4,}\b"),
    re.compile(r"\bCVE-\d{4}-\d+\b"),
    re.compile(r"\bE[A-Z]{3,}\b"),
]
TEMPLATES = json.loads((Path(__file__).resolve().parent / "templates.json").read_text())
"""Templates of questions and written forms of dates with their precision, by hand. Tuning and reporting sets share none."""

PARAPHRASES = Path(__file__).resolve().parent / "paraphrases.jsonl"
"""Questions written by hand, one JSON object per line: `set`, `text_digest` of the text that is meant, and `query`."""

REWORDED = PARAPHRASES.with_name("reworded.jsonl")
"""Questions written by hand as people ask, with or without words of their record."""

STOP = set((Path(__file__).resolve().parents[2] / "crates/lab/src/evaluation/make/stop_words.txt").read_text().split())


def fold(text):
    """Returns a text in lower case without diacritics."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(each for each in decomposed if not unicodedata.combining(each)).lower()


def words_of(text):
    """Returns the folded words of a text in order."""
    return WORD.findall(fold(text))


def stem(word):
    """Returns a word without common English endings. Only for deciding whether two texts share words."""
    for ending in ("ations", "ation", "ings", "ing", "ies", "ied", "ers", "ed", "er", "es", "ly", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def camel_parts(identifier):
    """Returns the parts of an identifier in camel case, in lower case."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+", identifier)]


class Record:
    """A record with the forms in which its text is compared."""

    def __init__(self, item, key, data, is_bare):
        self.item, self.key, self.data, self.is_bare = item, key, data, is_bare
        values = [str(value) for value in data.values()]
        self.text = "\n".join(values)
        self.prose = "\n".join(text for text in (data.get("title", ""), data["body"]) if text)
        self.sequence = words_of(self.prose)
        self.body = words_of(data["body"])
        self.words = set(words_of(self.text))
        self.counts = Counter(self.sequence)


class Corpus:
    """Records with an inverted index."""

    def __init__(self, connection, records):
        self.connection, self.records = connection, records
        self.postings = defaultdict(set)
        for number, record in enumerate(records):
            for word in record.words:
                self.postings[word].add(number)
        self.vocabulary = sorted(self.postings)

    def with_all(self, words):
        """Returns the numbers of the records that have all of some words."""
        sets = [self.postings.get(word, set()) for word in words]
        return set.intersection(*sets) if sets else set()

    def containing(self, text, candidates=None):
        """Returns the numbers of the records with a string in their text."""
        candidates = range(len(self.records)) if candidates is None else candidates
        return {number for number in candidates if text in self.records[number].text}

    def with_phrase(self, words):
        """Returns the numbers of the records that have words in sequence."""
        length, found = len(words), set()
        for number in self.with_all(words):
            sequence = words_of(self.records[number].text)
            if any(sequence[at:at + length] == words for at in range(len(sequence) - length + 1)):
                found.add(number)
        return found

    def topic(self, number, random, count, minimum=2):
        """Returns some typical words of a record: frequent in it, rare elsewhere, but in `minimum` records or more."""
        record = self.records[number]
        maximum = max(20, len(self.records) // 25)

        def is_typical(word):
            return (
                len(word) >= 4 and word.isalpha() and word not in STOP
                and minimum <= len(self.postings[word]) <= maximum
            )

        typical = [word for word in record.counts if is_typical(word)]
        typical.sort(key=lambda word: (-record.counts[word] / (2 + len(self.postings[word])) ** 0.5, word))
        typical = typical[:10]
        if len(typical) < count:
            return []
        chosen = random.sample(typical, count)
        return sorted(chosen, key=record.sequence.index)

    def question(self, query, numbers):
        """Returns a question with these relevant records, or `None` if they are too many."""
        if not 1 <= len(numbers) <= MAX_RELEVANT:
            return None
        ids = sorted(f"{self.connection}/{self.records[each].item.stream}:{self.records[each].key}" for each in numbers)
        return {"query": query, "relevant": ids}

    def shuffled(self, random, is_candidate=lambda record: True):
        """Returns the numbers of the candidates in random order."""
        numbers = [number for number, record in enumerate(self.records) if is_candidate(record)]
        random.shuffle(numbers)
        return numbers[:MAX_TRIES]


def is_english(record):
    """Returns true for a record in English."""
    return record.item.language == "en"


def exact_word(corpus, random):
    """A rare word."""
    for number in corpus.shuffled(random):
        rare = sorted(
            word for word in corpus.records[number].counts
            if len(corpus.postings[word]) <= 2 and len(word) >= 5 and word.isalpha() and word.isascii()
        )
        if rare:
            word = random.choice(rare)
            yield corpus.question(word, corpus.postings[word])


def phrase(corpus, random):
    """Five words as they follow each other."""
    for number in corpus.shuffled(random, is_english):
        sequence = corpus.records[number].body
        if len(sequence) < 30:
            continue
        at = random.randrange(len(sequence) - 5)
        words = sequence[at:at + 5]
        if sum(word not in STOP and len(word) > 2 for word in words) < 2 or any(word.isdigit() for word in words):
            continue
        yield corpus.question(" ".join(words), corpus.with_phrase(words))


def quoted(corpus, random):
    """Three quoted words that other records have elsewhere in their text."""
    for number in corpus.shuffled(random, is_english):
        sequence = corpus.records[number].body
        if len(sequence) < 30:
            continue
        at = random.randrange(len(sequence) - 3)
        words = sequence[at:at + 3]
        if sum(word not in STOP and len(word) > 2 for word in words) < 1 or any(word.isdigit() for word in words):
            continue
        if len(corpus.with_all(words)) >= 6:
            yield corpus.question('"' + " ".join(words) + '"', corpus.with_phrase(words))


def misspell(word, random):
    """Returns a word with one mistake after its first letter."""
    at = random.randrange(1, len(word) - 1)
    kind = random.choice(["swap", "drop", "double", "replace"])
    if kind == "swap":
        return word[:at] + word[at + 1] + word[at] + word[at + 2:]
    if kind == "drop":
        return word[:at] + word[at + 1:]
    if kind == "double":
        return word[:at] + word[at] + word[at:]
    return word[:at] + random.choice("etaoinsrl") + word[at + 1:]


def misspelt(corpus, random):
    """Two words of a topic, one of them misspelt."""
    for number in corpus.shuffled(random, is_english):
        topic = corpus.topic(number, random, 2)
        at = random.randrange(2)
        if not topic or len(topic[at]) < 5:
            continue
        wrong = misspell(topic[at], random)
        if wrong not in corpus.postings:
            query = [wrong if place == at else word for place, word in enumerate(topic)]
            yield corpus.question(" ".join(query), corpus.with_all(topic))


def inflections(word):
    """Returns other forms of an English word."""
    forms = []
    if word.endswith("ies"):
        forms.append(word[:-3] + "y")
    elif word.endswith("ing"):
        forms += [word[:-3] + "ed", word[:-3] + "s", word[:-3]]
    elif word.endswith("ed"):
        forms += [word[:-2] + "ing", word[:-2] + "s"]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        forms.append(word[:-1])
    elif word.endswith(("t", "k", "n", "l", "r", "w", "h")):
        forms += [word + "s", word + "ed", word + "ing"]
    elif word.endswith("e"):
        forms += [word + "s", word + "d", word[:-1] + "ing"]
    return forms


def inflected(corpus, random):
    """Two words of a topic, one of them in a form that the record does not have."""
    for number in corpus.shuffled(random, is_english):
        topic = corpus.topic(number, random, 2)
        at = random.randrange(2)
        if not topic:
            continue
        forms = [
            form for form in inflections(topic[at])
            if form in corpus.postings and form not in corpus.records[number].words
        ]
        if forms:
            query = [random.choice(forms) if place == at else word for place, word in enumerate(topic)]
            # Records that have the words as they are in the question would be better answers.
            if not corpus.with_all(query):
                yield corpus.question(" ".join(query), corpus.with_all(topic))


def absent(corpus, random):
    """Three words of a topic, and one that no record has with them."""
    for number in corpus.shuffled(random, is_english):
        topic = corpus.topic(number, random, 3)
        other = random.choice(corpus.vocabulary)
        usual = len(other) >= 4 and other.isalpha() and other.isascii() and 5 <= len(corpus.postings[other]) <= 100
        if not topic or not usual or any(corpus.with_all([other, word]) for word in topic):
            continue
        query = topic + [other]
        random.shuffle(query)
        yield corpus.question(" ".join(query), corpus.with_all(topic))


def identifier(corpus, random):
    """A path, hash, version, option or other identifier."""
    for number in corpus.shuffled(random):
        text = corpus.records[number].text
        pattern = random.choice(IDENTIFIERS)
        found = sorted({each for each in pattern.findall(text) if 5 <= len(each) <= 80})
        found = [each for each in found if not each.isalpha() or each.isupper()]
        if not found:
            continue
        name = random.choice(found)
        if re.fullmatch(r"[0-9a-f]{7,40}", name):
            if name.isdigit() or name.isalpha():
                continue
            # The beginning of a hash, as version control prints it.
            name = name[: random.choice([7, 8, 10, 12])]
            whole = re.compile(r"(?<!\w)" + name)
        else:
            whole = re.compile(r"(?<!\w)" + re.escape(name) + r"(?!\w)")
        yield corpus.question(name, {number for number, each in enumerate(corpus.records) if whole.search(each.text)})


def camel_part(corpus, random):
    """Two parts of an identifier in camel case, and a word of the topic."""
    for number in corpus.shuffled(random):
        record = corpus.records[number]
        names = sorted(set(CAMEL.findall(record.text)))
        topic = corpus.topic(number, random, 1)
        if not names or not topic:
            continue
        parts = camel_parts(random.choice(names))
        at = random.randrange(len(parts) - 1)
        pair = parts[at:at + 2]
        if topic[0] in pair or all(part in record.words for part in pair):
            continue
        joined, relevant = "".join(pair), set()
        for other in corpus.postings[topic[0]]:
            text = corpus.records[other].text
            named = any(joined in "".join(camel_parts(name)) for name in CAMEL.findall(text))
            if named or all(part in corpus.records[other].words for part in pair):
                relevant.add(other)
        yield corpus.question(" ".join(pair + topic), relevant)


def beginning(corpus, random):
    """The beginning of a word, and a word of the topic."""
    for number in corpus.shuffled(random):
        record = corpus.records[number]
        topic = corpus.topic(number, random, 1)
        long = sorted(
            word for word in record.counts
            if len(word) >= 9 and word.isalpha() and word.isascii() and len(corpus.postings[word]) <= 30
        )
        if not topic or not long:
            continue
        word = random.choice(long)
        start = word[: random.randrange(5, len(word) - 2)]
        if start in corpus.postings or word == topic[0]:
            continue
        continued = [other for other in corpus.vocabulary if other.startswith(start)]
        with_start = set().union(*(corpus.postings[other] for other in continued))
        yield corpus.question(f"{start} {topic[0]}", with_start & corpus.postings[topic[0]])


MONTHS = "January February March April May June July August September October November December".split()


def topic_and_date(corpus, random):
    """A word of the topic and the day, month or year of the record, if the word alone does not suffice."""
    for number in corpus.shuffled(random, lambda record: bool(record.item.date)):
        topic = corpus.topic(number, random, random.choice([1, 2]), minimum=4)
        if not topic:
            continue
        year, month, day = corpus.records[number].item.date[:10].split("-")
        form, length = random.choice([
            (f"{year}-{month}-{day}", 10), (f"{year}-{month}", 7), (f"{MONTHS[int(month) - 1]} {year}", 7),
        ])
        start = corpus.records[number].item.date[:length]
        with_topic = corpus.with_all(topic)
        relevant = {each for each in with_topic if corpus.records[each].item.date.startswith(start)}
        if len(with_topic) > len(relevant):
            yield corpus.question(f"{' '.join(topic)} {form}", relevant)


def author_and_topic(corpus, random):
    """An author and a word of the topic, if the word alone does not suffice."""
    for number in corpus.shuffled(random, lambda record: bool(record.item.author)):
        topic = corpus.topic(number, random, random.choice([1, 2]), minimum=4)
        author = corpus.records[number].item.author
        if not topic or not words_of(author):
            continue
        with_topic = corpus.with_all(topic)
        relevant = {each for each in with_topic if corpus.records[each].item.author == author}
        if len(with_topic) > len(relevant):
            name = random.choice([author, author.split()[-1]]) if len(author.split()[-1]) > 3 else author
            yield corpus.question(f"{name} {' '.join(topic)}", relevant)


def content(text):
    """Returns the stems of the words of a text that carry meaning, parts of identifiers included."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {stem(word) for word in words_of(text) if word not in STOP and len(word) > 2}


def summaries(corpus):
    """Returns for each summary the number of records that have it."""
    return Counter(" ".join(words_of(record.item.summary)) for record in corpus.records)


def is_question(record, counts):
    """Returns true for a record without its summary, which is a question of its own."""
    text = record.item.summary
    is_heading_of_version = re.search(r"\d\.\d", text)
    is_unique = counts[" ".join(words_of(text))] == 1
    return record.is_bare and not is_heading_of_version and len(content(text)) >= 3 and is_unique


def natural(corpus, random):
    """The summary of a text from which it was removed."""
    counts = summaries(corpus)
    for number in corpus.shuffled(random, lambda record: is_english(record) and is_question(record, counts)):
        record = corpus.records[number]
        if content(record.item.summary) & content(record.text):
            yield corpus.question(" ".join(record.item.summary.split()), {number})


def any_summary(corpus, random):
    """The summary of a text from which it was removed, however many words they share."""
    counts = summaries(corpus)
    for number in corpus.shuffled(random, lambda record: is_question(record, counts)):
        yield corpus.question(" ".join(corpus.records[number].item.summary.split()), {number})


def distant_summary(corpus, random):
    """A summary that shares no word with its text."""
    counts = summaries(corpus)
    for number in corpus.shuffled(random, lambda record: is_english(record) and is_question(record, counts)):
        record = corpus.records[number]
        if not content(record.item.summary) & content(record.text):
            yield corpus.question(" ".join(record.item.summary.split()), {number})


def side(corpus):
    """Returns the side of a set by its name; that for CI has the templates of tuning."""
    return "r" if corpus.connection.startswith("r") else "t"


def question(corpus, random):
    """Two or three words of a topic in a natural question."""
    for number in corpus.shuffled(random):
        topic = corpus.topic(number, random, random.choice([2, 3]))
        if topic:
            template = random.choice(TEMPLATES["questions"][side(corpus)])
            yield corpus.question(template.format(" ".join(topic)), corpus.with_all(topic))


def date(corpus, random):
    """A topic and a date in a written form, if the topic alone does not suffice."""
    for number in corpus.shuffled(random, lambda record: bool(record.item.date)):
        topic = corpus.topic(number, random, random.choice([1, 2]), minimum=4)
        if not topic:
            continue
        year, month, day = map(int, corpus.records[number].item.date[:10].split("-"))
        form, precision = random.choice(TEMPLATES["dates"][side(corpus)])
        names = {language: of_language[month - 1] for language, of_language in TEMPLATES["months"].items()}
        written = form.format(y=year, m=month, d=day, q=(month + 2) // 3, **names)

        def is_then(other):
            date = corpus.records[other].item.date
            if precision == "quarter":
                return date[:4] == f"{year}" and (int(date[5:7]) + 2) // 3 == (month + 2) // 3
            length = 10 if precision == "day" else 7
            return date[:length] == f"{year}-{month:02}-{day:02}"[:length]

        with_topic = corpus.with_all(topic)
        relevant = {each for each in with_topic if corpus.records[each].item.date and is_then(each)}
        if len(with_topic) > len(relevant):
            yield corpus.question(f"{' '.join(topic)} {written}", relevant)


def digest(text):
    """Returns a hash that is the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def text_digest(text):
    """Returns the hash of the beginning of a text, as 16 hexadecimal digits."""
    return f"{digest(' '.join(text.split())[:400].lower()):016x}"


def by_hand(file, corpus, random):
    """Returns the numbers of the records that questions of a file mean, each with its question."""
    with open(file) as lines:
        lines = [line for line in map(json.loads, lines) if line["set"] == corpus.connection]
    queries = {line["text_digest"]: line["query"] for line in lines}
    for number in corpus.shuffled(random, lambda record: text_digest(record.item.text) in queries):
        yield number, queries[text_digest(corpus.records[number].item.text)]


def paraphrase(corpus, random):
    """A question written by hand that shares no word with its record."""
    for number, query in by_hand(PARAPHRASES, corpus, random):
        if not content(query) & content(corpus.records[number].text):
            yield corpus.question(query, {number})


def reworded(corpus, random):
    """A question written by hand that may share words with its record."""
    for number, query in by_hand(REWORDED, corpus, random):
        yield corpus.question(query, {number})


def is_other_latin(record):
    """Returns true for a record in another language with Latin letters."""
    return record.item.language not in ("en", "ja", "ko", "zh_CN", "zh_TW", "ru", "uk", "sr")


def other_language(corpus, random):
    """A summary or a topic in another language."""
    counts = summaries(corpus)
    for number in corpus.shuffled(random, is_other_latin):
        record = corpus.records[number]
        if is_question(record, counts):
            yield corpus.question(record.item.summary, {number})
        elif topic := corpus.topic(number, random, 3):
            yield corpus.question(" ".join(topic), corpus.with_all(topic))


def accents_left_out(corpus, random):
    """Words of a topic that are written with accents, without them."""
    for number in corpus.shuffled(random):
        record = corpus.records[number]
        accented = {fold(word) for word in WORD.findall(record.prose) if not word.isascii() and fold(word).isascii()}
        accented = sorted(
            word for word in accented if len(word) >= 5 and word in corpus.postings and len(corpus.postings[word]) <= 60
        )
        topic = corpus.topic(number, random, 1)
        if accented and topic:
            words = sorted({random.choice(accented), topic[0]})
            yield corpus.question(" ".join(words), corpus.with_all(words))


def cjk(corpus, random):
    """Some characters of a text in Chinese, Japanese or Korean."""
    for number in corpus.shuffled(random, lambda record: CJK.search(record.prose)):
        run = random.choice(CJK.findall(corpus.records[number].prose))
        if " " in run:
            words = run.split()
            at = random.randrange(len(words) - 1)
            text = " ".join(words[at:at + 2])
        else:
            length = min(len(run), random.randrange(4, 8))
            at = random.randrange(len(run) - length + 1)
            text = run[at:at + length]
        yield corpus.question(text, corpus.containing(text))


def unanswerable(corpus, random):
    """Three words that no record has two of."""
    for _ in range(MAX_TRIES):
        words = random.sample(corpus.vocabulary, 3)
        usual = all(
            len(word) >= 5 and word.isalpha() and word.isascii() and 2 <= len(corpus.postings[word]) <= 50
            for word in words
        )
        if usual and not any(corpus.with_all(pair) for pair in itertools.combinations(words, 2)):
            yield {"query": " ".join(words), "relevant": []}


KINDS = {
    "exact_word": exact_word,
    "phrase": phrase,
    "quoted": quoted,
    "misspelt": misspelt,
    "inflected": inflected,
    "absent": absent,
    "identifier": identifier,
    "camel_part": camel_part,
    "beginning": beginning,
    "topic_and_date": topic_and_date,
    "author_and_topic": author_and_topic,
    "natural": natural,
    "other_language": other_language,
    "accents_left_out": accents_left_out,
    "cjk": cjk,
    "paraphrase": paraphrase,
    "reworded": reworded,
    "distant_summary": distant_summary,
    "unanswerable": unanswerable,
    "question": question,
    "date": date,
}
"""The functions that make the questions of each kind."""

NATURAL = {"summary": any_summary}
"""The kind of the natural sets."""


def questions(corpus, kinds, per_kind, random_of):
    """Returns at most `per_kind` questions of each kind, each query once, without kinds that have too few."""
    made, seen = [], set()
    for kind, make in kinds.items():
        count, of_kind = 0, []
        for question in make(corpus, random_of(kind)):
            if count >= per_kind:
                break
            if question is None or question["query"] in seen:
                continue
            seen.add(question["query"])
            count += 1
            of_kind.append({"id": f"{kind}-{count:03}", "kind": kind, **question})
        if count * MIN_SHARE >= per_kind:
            made += of_kind
    return made
