"""Writes a small unigram tokenizer, and the ids that SentencePiece gives texts with it, as fixtures.

    pip install sentencepiece protobuf
    python tests/embedding/unigram.py docs/*.md

The results are `fixtures/embedding/tiny-unigram/tokenizer.json`, in the form of the library `tokenizers`, and `ids.json`.
"""

import base64
import io
import json
import random
import sys
import tempfile
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

FOLDER = Path(__file__).parents[2] / "fixtures" / "embedding" / "tiny-unigram"

# Characters with their replacements. A real model has about 5,000.
CHARS = [
    ("\uff21", "A"),
    ("\ufb01", "fi"),
    ("\u2026", "..."),
    ("\u3000", " "),
    ("\u200b", " "),
    ("\u00bd", "1\u20442"),
    ("e\u0301", "\u00e9"),
    ("A\u0308", "\u00c4"),
    ("\u0001", ""),
]

OTHER_LANGUAGES = (
    "Die Fähre nach Texel fährt am Mittag ab. Übermäßig große Schiffe können nicht einlaufen.\n"
    "L'été dernier, nous avons mangé des crêpes à côté de la gare.\n"
    "Паром отправляется в полдень. Сегодня идёт дождь.\n"
    "会議は東京で行われます。請求書を送ってください。\n"
    "السيارة في المرآب. المطر طوال اليوم.\n"
) * 60

CASES = [
    "",
    "hello world",
    "Die Fähre nach Texel",
    "\uff21\uff21 \ufb01ne\u2026 \u00bd",
    "会議は東京で行われます。",
    "e\u0301te\u0301 A\u0308rger",
    "a\u3000b",
    "x\u200by",
    "\U0001d54f emoji \U0001f600\U0001f600 zz",
    "السيارة",
    "Паром",
    "\u0001abc",
    "<s> </s> <unk>",
    "foo_bar=baz(42);",
    "ß ẞ ı İ",
]


def main() -> None:
    corpus = "".join(Path(name).read_text() for name in sys.argv[1:]) + OTHER_LANGUAGES
    lines = [line for line in corpus.splitlines() if line.strip()]
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        for one, other in CHARS:
            rules.write("\t".join(" ".join(f"{ord(char):X}" for char in text) for text in (one, other)) + "\n")
        rules.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=400,
            model_type="unigram",
            normalization_rule_tsv=rules.name,
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=3,
            num_threads=1,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    chars = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    tokenizer = {
        "version": "1.0",
        "normalizer": {
            "type": "Sequence",
            "normalizers": [{"type": "Precompiled", "precompiled_charsmap": chars}, spaces],
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
            ],
        },
        "model": {
            "type": "Unigram",
            "unk_id": 3,
            "vocab": [[piece.piece, round(piece.score, 6)] for piece in proto.pieces],
            "byte_fallback": False,
        },
    }
    random.seed(1)
    cases = list(CASES)
    for _ in range(40):
        line = random.choice(lines)
        start = random.randrange(len(line))
        cases.append(line[start : start + random.randrange(5, 80)])
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = [[text, [0, *processor.encode(text), 2]] for text in cases]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False) + "\n")
    (FOLDER / "ids.json").write_text(json.dumps(ids, ensure_ascii=False, indent=1) + "\n")


main()
