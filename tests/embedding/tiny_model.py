"""Writes the models of the tests: `fixtures/embedding/tiny/` and `tiny-cross/`.

    python tests/embedding/tiny_model.py fixtures/embedding/tiny
    python tests/embedding/tiny_model.py fixtures/embedding/tiny-cross

They have a vocabulary of a few words in groups of one meaning. A word's vector is the axis of its group, so texts with
words of one group are near to each other. The score of the cross-encoder is the inner product of the sums of both
texts. Needs the packages `numpy` and `onnx`.
"""

import json
import sys
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

GROUPS = [
    ["invoice", "bill", "payment"],
    ["car", "automobile", "vehicle"],
    ["doctor", "physician"],
    ["rain", "storm", "weather"],
    ["meeting", "appointment"],
    ["fetchwell", "model"],
    ["the", "a", "is", "this", "that", "it", "and", "one", "of"],
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
DIMENSIONS = 8


def inputs(*names: str) -> list:
    return [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "pieces"]) for name in names]


def encoder(table: numpy.ndarray) -> onnx.GraphProto:
    return helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"], axis=0)],
        "tiny",
        inputs("input_ids", "attention_mask"),
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "pieces", DIMENSIONS])],
        [numpy_helper.from_array(table, "table")],
    )


def cross_encoder(table: numpy.ndarray) -> onnx.GraphProto:
    node = helper.make_node
    return helper.make_graph(
        [
            node("Gather", ["table", "input_ids"], ["vectors"], axis=0),
            node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
            node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            node("Mul", ["mask", "types"], ["second"]),
            node("Sub", ["mask", "second"], ["first"]),
            node("Unsqueeze", ["first", "axis1"], ["first_row"]),
            node("Unsqueeze", ["second", "axis1"], ["second_row"]),
            node("MatMul", ["first_row", "vectors"], ["query"]),
            node("MatMul", ["second_row", "vectors"], ["passage"]),
            node("Mul", ["query", "passage"], ["products"]),
            node("ReduceSum", ["products", "axis2"], ["logits"], keepdims=0),
        ],
        "tiny-cross",
        inputs("input_ids", "attention_mask", "token_type_ids"),
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(numpy.array([1], dtype=numpy.int64), "axis1"),
            numpy_helper.from_array(numpy.array([2], dtype=numpy.int64), "axis2"),
        ],
    )


def main(folder: Path) -> None:
    words = [word for group in GROUPS for word in group]
    names = SPECIAL + words + [letter for letter in LETTERS if letter not in words]
    names += ["##" + letter for letter in LETTERS]
    table = numpy.full((len(names), DIMENSIONS), 0.01, dtype=numpy.float32)
    table[0] = 0
    for axis, group in enumerate(GROUPS):
        for position, word in enumerate(group):
            table[names.index(word), axis] = 1.0 if axis < len(GROUPS) - 1 else 0.05
            table[names.index(word), DIMENSIONS - 1] = 0.02 * position
    graph = cross_encoder(table) if folder.name == "tiny-cross" else encoder(table)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {name: number for number, name in enumerate(names)},
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, indent=0) + "\n")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 64}\n')


main(Path(sys.argv[1]))
